package zoo;

import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.Arrays;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What a class is to its program: members, signatures, names of parameters, annotations, in one number. */
final class Reflected {
    private Reflected() {}

    static String digest(String name, ClassLoader loader) {
        try {
            return Integer.toHexString(describe(Class.forName(name, false, loader)).hashCode());
        } catch (ReflectiveOperationException | LinkageError failure) {
            return failure.getClass().getSimpleName();
        }
    }

    private static String describe(Class<?> type) {
        Stream<String> fields = Arrays.stream(type.getDeclaredFields()).map(Field::toGenericString);
        Stream<String> executables = Stream.concat(
                Arrays.stream(type.getDeclaredConstructors()).map(Reflected::describe),
                Arrays.stream(type.getDeclaredMethods()).map(Reflected::describe));
        // The JVM may give the members in another order.
        return type.toGenericString() + annotations(type)
                + Stream.concat(fields, executables).sorted().collect(Collectors.joining("\n"));
    }

    private static String describe(Executable executable) {
        String signature = executable instanceof Method method ? method.toGenericString() : ((Constructor<?>) executable).toGenericString();
        String parameters = Arrays.stream(executable.getParameters()).map(Reflected::describe).collect(Collectors.joining(","));
        return signature + annotations(executable) + parameters;
    }

    private static String describe(Parameter parameter) {
        return parameter.isNamePresent() + parameter.getName() + parameter.getModifiers() + annotations(parameter);
    }

    private static String annotations(AnnotatedElement element) {
        return Arrays.stream(element.getAnnotations()).map(Object::toString).sorted().collect(Collectors.joining());
    }
}
