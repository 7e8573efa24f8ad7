import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.MessageDigest;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Is its own Java agent, and says on demand what the JVM takes its classes' bytes for. Commands: go, digest, quit. */
public class ClassBytes {
    private static Instrumentation instrumentation;

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("WORK " + Work.root(3));
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            System.out.println(line.equals("digest") ? "DIGEST " + digest() : "WORK " + Work.root(3));
        }
    }

    private static String digest() throws Exception {
        Map<String, byte[]> found = new TreeMap<>();
        ClassFileTransformer reader = new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> type, ProtectionDomain domain, byte[] bytes) {
                found.put(name, bytes.clone());
                return null;
            }
        };
        instrumentation.addTransformer(reader, true);
        List<Class<?>> classes = new ArrayList<>();
        for (Class<?> loaded : instrumentation.getAllLoadedClasses()) {
            if (loaded.getName().startsWith("ClassBytes$") && instrumentation.isModifiableClass(loaded)) {
                classes.add(loaded);
            }
        }
        instrumentation.retransformClasses(classes.toArray(new Class<?>[0]));
        instrumentation.removeTransformer(reader);
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (Map.Entry<String, byte[]> entry : found.entrySet()) {
            digest.update(entry.getKey().getBytes());
            digest.update(entry.getValue());
        }
        StringBuilder text = new StringBuilder(found.size() + " ");
        for (byte b : digest.digest()) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }

    static class Work {
        static int root(int n) {
            int sum = 0;
            for (Shape shape : new Shape[] {new Square(n), new Disc(n)}) {
                sum += shape.area();
            }
            return sum;
        }
    }

    interface Shape {
        int area();
    }

    static class Square implements Shape {
        final int side;

        Square(int side) {
            this.side = side;
        }

        @Override
        public int area() {
            return side * side;
        }
    }

    static class Disc implements Shape {
        final int radius;

        Disc(int radius) {
            this.radius = radius;
        }

        @Override
        public int area() {
            return 3 * radius * radius;
        }
    }
}
