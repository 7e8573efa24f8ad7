import java.io.PrintStream;
import java.lang.annotation.Annotation;
import java.lang.reflect.*;
import java.util.*;
import java.util.function.Supplier;

/** Says all that reflection says of classes, a line for each thing. */
final class Describe {
    private final PrintStream out;

    Describe(PrintStream out) {
        this.out = out;
    }

    void type(Class<?> type) {
        String name = type.getName();
        say(name, "modifiers", () -> Integer.toHexString(type.getModifiers()));
        say(name, "generic", type::toGenericString);
        say(name, "kind", () -> List.of(type.isSynthetic(), type.isAnonymousClass(), type.isLocalClass(), type.isMemberClass(), type.isRecord(), type.isSealed(), type.isEnum(), type.isAnnotation(), type.isHidden()));
        say(name, "names", () -> type.getSimpleName() + " " + type.getCanonicalName() + " " + type.getTypeName());
        say(name, "enclosing class", type::getEnclosingClass);
        say(name, "enclosing method", type::getEnclosingMethod);
        say(name, "enclosing constructor", type::getEnclosingConstructor);
        say(name, "declaring class", type::getDeclaringClass);
        say(name, "declared classes", () -> Arrays.toString(type.getDeclaredClasses()));
        say(name, "nest host", type::getNestHost);
        say(name, "nest members", () -> Arrays.toString(type.getNestMembers()));
        say(name, "permitted subclasses", () -> Arrays.toString(type.getPermittedSubclasses()));
        say(name, "superclass", type::getGenericSuperclass);
        say(name, "annotated superclass", () -> annotated(type.getAnnotatedSuperclass()));
        say(name, "interfaces", () -> Arrays.toString(type.getGenericInterfaces()));
        say(name, "annotated interfaces", () -> annotated(type.getAnnotatedInterfaces()));
        say(name, "type parameters", () -> variables(type.getTypeParameters()));
        say(name, "annotations", () -> annotations(type));
        components(type);
        for (Field field : or(type::getDeclaredFields, new Field[0])) {
            String of = name + " field " + field.getName();
            say(of, "generic", field::toGenericString);
            say(of, "modifiers", () -> Integer.toHexString(field.getModifiers()));
            say(of, "annotations", () -> annotations(field));
            say(of, "annotated type", () -> annotated(field.getAnnotatedType()));
        }
        for (Constructor<?> constructor : or(type::getDeclaredConstructors, new Constructor<?>[0])) {
            executable(name, constructor);
        }
        for (Method method : or(type::getDeclaredMethods, new Method[0])) {
            String of = executable(name, method);
            say(of, "default", () -> Arrays.deepToString(new Object[] {method.getDefaultValue()}));
            say(of, "kind", () -> List.of(method.isBridge(), method.isDefault()));
        }
    }

    private void components(Class<?> type) {
        RecordComponent[] components = or(type::getRecordComponents, null);
        if (components == null) {
            return;
        }
        for (RecordComponent component : components) {
            String of = type.getName() + " component " + component.getName();
            say(of, "type", component::getGenericType);
            say(of, "signature", component::getGenericSignature);
            say(of, "accessor", component::getAccessor);
            say(of, "annotations", () -> annotations(component));
            say(of, "annotated type", () -> annotated(component.getAnnotatedType()));
        }
    }

    private String executable(String type, Executable executable) {
        String of = type + " method " + executable.getName() + Arrays.toString(executable.getParameterTypes());
        say(of, "generic", executable::toGenericString);
        say(of, "modifiers", () -> Integer.toHexString(executable.getModifiers()));
        say(of, "kind", () -> List.of(executable.isSynthetic(), executable.isVarArgs()));
        say(of, "type parameters", () -> variables(executable.getTypeParameters()));
        say(of, "annotations", () -> annotations(executable));
        say(of, "parameter annotations", () -> Arrays.deepToString(executable.getParameterAnnotations()));
        say(of, "annotated result", () -> annotated(executable.getAnnotatedReturnType()));
        say(of, "annotated receiver", () -> annotated(executable.getAnnotatedReceiverType()));
        say(of, "exceptions", () -> Arrays.toString(executable.getGenericExceptionTypes()));
        say(of, "annotated exceptions", () -> annotated(executable.getAnnotatedExceptionTypes()));
        for (Parameter parameter : or(executable::getParameters, new Parameter[0])) {
            say(of, "parameter", () -> parameter + " " + parameter.isNamePresent() + " " + Integer.toHexString(parameter.getModifiers()) + " " + annotations(parameter) + " " + annotated(parameter.getAnnotatedType()));
        }
        return of;
    }

    private static String annotations(AnnotatedElement element) {
        StringBuilder all = new StringBuilder();
        for (Annotation annotation : element.getAnnotations()) {
            all.append(annotation).append(' ');
        }
        return all.toString();
    }

    private static String variables(TypeVariable<?>[] variables) {
        StringBuilder all = new StringBuilder();
        for (TypeVariable<?> variable : variables) {
            all.append(annotations(variable)).append(variable).append(annotated(variable.getAnnotatedBounds()));
        }
        return all.toString();
    }

    private static String annotated(AnnotatedType... types) {
        StringBuilder all = new StringBuilder("[");
        for (AnnotatedType type : types) {
            all.append(type).append(", ");
        }
        return all.append(']').toString();
    }

    private interface Question<T> {
        T ask() throws Throwable;
    }

    private static <T> T or(Question<T> question, T otherwise) {
        try {
            return question.ask();
        } catch (Throwable none) {
            return otherwise;
        }
    }

    private void say(String of, String what, Question<?> question) {
        String answer;
        try {
            answer = String.valueOf(question.ask());
        } catch (Throwable thrown) {
            answer = thrown.toString();
        }
        out.println(of + ": " + what + ": " + answer);
    }
}
