import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;

/** Says which methods and fields that classes name are not there. Arguments: the classes, of the bootstrap loader, with slashes. */
public class Linkage {
    public static void main(String[] args) throws Exception {
        int named = 0;
        for (String name : args) {
            try (InputStream in = Object.class.getResourceAsStream("/" + name + ".class")) {
                named += check(name, new DataInputStream(in));
            }
        }
        System.out.println("NAMED " + named);
    }

    /** Reads the constant pool (JVMS 4.4); how many members are named in it. */
    static int check(String user, DataInputStream in) throws IOException, ClassNotFoundException {
        in.readInt();
        in.readInt();
        int count = in.readUnsignedShort();
        String[] texts = new String[count];
        int[] tags = new int[count];
        int[] firsts = new int[count];
        int[] seconds = new int[count];
        for (int i = 1; i < count; i++) {
            tags[i] = in.readUnsignedByte();
            switch (tags[i]) {
                case 1: texts[i] = in.readUTF(); break;
                case 3: case 4: in.readInt(); break;
                case 5: case 6: in.readLong(); i++; break;
                case 7: case 8: case 16: firsts[i] = in.readUnsignedShort(); break;
                case 15: in.readUnsignedByte(); in.readUnsignedShort(); break;
                default: firsts[i] = in.readUnsignedShort(); seconds[i] = in.readUnsignedShort();
            }
        }
        int named = 0;
        for (int i = 1; i < count; i++) {
            if (tags[i] < 9 || tags[i] > 11) {
                continue;
            }
            named++;
            String owner = texts[firsts[firsts[i]]];
            String name = texts[firsts[seconds[i]]];
            String descriptor = texts[seconds[seconds[i]]];
            Class<?> type = Class.forName(owner.replace('/', '.'), false, null);
            if (!(tags[i] == 9 ? hasField(type, name, descriptor) : hasMethod(type, name, descriptor))) {
                System.out.println("MISSING " + owner + "." + name + descriptor + " of " + user);
            }
        }
        return named;
    }

    static boolean hasField(Class<?> type, String name, String descriptor) {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Field field : each.getDeclaredFields()) {
                if (field.getName().equals(name)
                        && MethodType.methodType(field.getType()).toMethodDescriptorString().equals("()" + descriptor)) {
                    return true;
                }
            }
        }
        return false;
    }

    static boolean hasMethod(Class<?> type, String name, String descriptor) {
        MethodType wanted = MethodType.fromMethodDescriptorString(descriptor, null);
        if (name.equals("<init>")) {
            for (Constructor<?> constructor : type.getDeclaredConstructors()) {
                if (Arrays.equals(constructor.getParameterTypes(), wanted.parameterArray())) {
                    return true;
                }
            }
            return false;
        }
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Method method : each.getDeclaredMethods()) {
                boolean isPolymorphic = each.getName().equals("java.lang.invoke.MethodHandle") && method.isVarArgs();
                boolean fits = method.getReturnType() == wanted.returnType()
                        && Arrays.equals(method.getParameterTypes(), wanted.parameterArray());
                if (method.getName().equals(name) && (isPolymorphic || fits)) {
                    return true;
                }
            }
        }
        // An interface's, or those of every object.
        for (Class<?> each : type.getInterfaces()) {
            if (hasMethod(each, name, descriptor)) {
                return true;
            }
        }
        return type.isInterface() && hasMethod(Object.class, name, descriptor);
    }
}
