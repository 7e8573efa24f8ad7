import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/**
 * Calls a root method over and over and says, twice a second, how many nanoseconds one call took. Argument: which root; with a second
 * one, {@code each}, it reads the clock around each call, and says what was between. Ends with its standard input.
 */
public class Workload {
    interface Shape {
        double area();
    }

    record Square(double side) implements Shape {
        public double area() {
            return side * side;
        }
    }

    record Circle(double radius) implements Shape {
        public double area() {
            return 3.14 * radius * radius;
        }
    }

    record Triangle(double base, double height) implements Shape {
        public double area() {
            return base * height / 2;
        }
    }

    record Scaled(Shape shape, double factor) implements Shape {
        public double area() {
            return shape.area() * factor;
        }
    }

    static final Shape[] SHAPES = new Shape[64];
    static int[] values = new int[256];
    static volatile double sink;

    /** Call-dense: 1 + 100 + 1000 calls of next to nothing. */
    static int dense(int seed) {
        int sum = 0;
        for (int i = 0; i < 100; i++) {
            sum += middle(seed + i);
        }
        return sum;
    }

    /** As dense, and longer: 1 + 100,000 + 1,000,000 calls of next to nothing. */
    static int million(int seed) {
        int sum = 0;
        for (int i = 0; i < 100_000; i++) {
            sum += middle(seed + i);
        }
        return sum;
    }

    static int middle(int x) {
        int sum = 0;
        for (int i = 0; i < 10; i++) {
            sum += leaf(x + i);
        }
        return sum;
    }

    static int leaf(int x) {
        return x * 31 + (x >>> 3);
    }

    /** Polymorphic: 1 + 640 + 160 calls. */
    static int polymorphic(int seed) {
        double sum = 0;
        for (int i = 0; i < 640; i++) {
            sum += SHAPES[i + seed & 63].area();
        }
        return (int) sum;
    }

    /** A stream: 1 + 2000 calls, of lambdas' bodies by the JDK. */
    static int streams(int seed) {
        return IntStream.range(seed, seed + 1000).map(Workload::next).filter(Workload::isOdd).sum();
    }

    static int next(int x) {
        return x * 2 + 1;
    }

    static boolean isOdd(int x) {
        return (x / 3) % 2 == 1;
    }

    static final Integer[] NUMBERS = new Integer[2000];

    /** Comparators: sorts 2000 numbers by two keys, by lambdas of ours that the JDK's call. */
    static int comparators(int seed) {
        Integer[] sorted = NUMBERS.clone();
        java.util.Arrays.sort(sorted, Comparator.<Integer, Integer>comparing(x -> x & 0xffff).thenComparing(x -> x));
        return sorted[seed & 1023];
    }

    /** Coarse: 1 + 20 calls of some microseconds. */
    static int coarse(int seed) {
        int sum = 0;
        for (int i = 0; i < 20; i++) {
            sum += sort(seed + i);
        }
        return sum;
    }

    static int sort(int seed) {
        int[] sorted = values.clone();
        for (int i = 0; i < sorted.length; i++) {
            sorted[i] ^= seed * 7919 & 1023;
        }
        java.util.Arrays.sort(sorted);
        return sorted[seed & 255];
    }

    /** Mixed: 1 + 40 calls, of which half sort for some microseconds, and half make 20 + 200 calls of next to nothing. */
    static int mixed(int seed) {
        int sum = 0;
        for (int i = 0; i < 20; i++) {
            sum += sort(seed + i) + few(seed);
        }
        return sum;
    }

    static int few(int seed) {
        int sum = 0;
        for (int i = 0; i < 20; i++) {
            sum += middle(seed + i);
        }
        return sum;
    }

    /** javac: compiles one class in memory. */
    static int javac(int seed) {
        return Compiler.compile();
    }

    /** What javac reads and writes, in memory. */
    static final class Compiler {
        static final JavaCompiler JAVAC = ToolProvider.getSystemJavaCompiler();
        static final String TEXT = text();

        static int compile() {
            int[] written = new int[1];
            JavaFileManager files = new ForwardingJavaFileManager<JavaFileManager>(
                    JAVAC.getStandardFileManager(null, null, null)) {
                @Override
                public JavaFileObject getJavaFileForOutput(Location location, String name,
                        JavaFileObject.Kind kind, FileObject sibling) {
                    return new SimpleJavaFileObject(URI.create("memory:/" + name), kind) {
                        @Override
                        public OutputStream openOutputStream() {
                            return new ByteArrayOutputStream() {
                                @Override
                                public void close() {
                                    written[0] += size();
                                }
                            };
                        }
                    };
                }
            };
            JavaFileObject source = new SimpleJavaFileObject(
                    URI.create("memory:/Generated.java"), JavaFileObject.Kind.SOURCE) {
                @Override
                public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                    return TEXT;
                }
            };
            List<String> options = List.of("-proc:none");
            if (!JAVAC.getTask(null, files, null, options, null, List.of(source)).call()) {
                throw new IllegalStateException("it does not compile");
            }
            return written[0];
        }

        static String text() {
            StringBuilder text = new StringBuilder("import java.util.*;\nclass Generated {\n");
            for (int i = 0; i < 40; i++) {
                text.append("static int m" + i + "(List<String> list, Map<String, Integer> counts, int x) {\n"
                        + "int sum = " + i + ";\n"
                        + "for (String each : list) {\n"
                        + "if (each.length() > x) { sum += each.hashCode() * 31 + x; counts.merge(each, x, Integer::sum); }\n"
                        + "else { sum -= list.indexOf(each) + (x << 2); }\n"
                        + "}\n"
                        + "Comparator<String> order = (a, b) -> a.length() - b.length() + x;\n"
                        + "list.sort(order);\n"
                        + "return sum + counts.size();\n"
                        + "}\n");
            }
            return text.append("}\n").toString();
        }
    }

    static int outside(int seed) {
        return dense(seed);
    }

    public static void main(String[] args) {
        for (int i = 0; i < SHAPES.length; i++) {
            switch (i & 3) {
                case 0: SHAPES[i] = new Square(i); break;
                case 1: SHAPES[i] = new Circle(i); break;
                case 2: SHAPES[i] = new Triangle(i, 2); break;
                default: SHAPES[i] = new Scaled(SHAPES[i - 3], 2);
            }
        }
        for (int i = 0; i < values.length; i++) {
            values[i] = i * 7919 & 1023;
        }
        Random random = new Random(5);
        for (int i = 0; i < NUMBERS.length; i++) {
            NUMBERS[i] = random.nextInt();
        }
        IntUnaryOperator root;
        switch (args[0]) {
            case "dense": root = Workload::dense; break;
            case "million": root = Workload::million; break;
            case "polymorphic": root = Workload::polymorphic; break;
            case "mixed": root = Workload::mixed; break;
            case "coarse": root = Workload::coarse; break;
            case "streams": root = Workload::streams; break;
            case "comparators": root = Workload::comparators; break;
            case "javac": root = Workload::javac; break;
            default: throw new IllegalArgumentException(args[0]);
        }
        Thread reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Only the end is of interest.
                }
            } catch (IOException end) {
                // As good as an end.
            }
            System.exit(0);
        });
        reader.setDaemon(true);
        reader.start();
        int batch = args[0].equals("javac") ? 1 : 100;
        for (;;) {
            if (args.length > 1) {
                roundOfEach(root, batch);
            } else {
                round(root, batch);
            }
        }
    }

    /** The clock is read after so many calls. */
    static void round(IntUnaryOperator root, int batch) {
        int calls = 0;
        int sum = 0;
        long start = System.nanoTime();
        long now;
        do {
            for (int i = 0; i < batch; i++) {
                sum += root.applyAsInt(i);
            }
            calls += batch;
            now = System.nanoTime();
        } while (now - start < 500_000_000L);
        sink = sum;
        say((double) (now - start) / calls);
    }

    /** The clock is read around each call as well: a loop of its own, because what the compiler makes of the other is what is measured there. */
    static void roundOfEach(IntUnaryOperator root, int batch) {
        int calls = 0;
        int sum = 0;
        long inside = 0;
        long start = System.nanoTime();
        long now;
        do {
            for (int i = 0; i < batch; i++) {
                long before = System.nanoTime();
                sum += root.applyAsInt(i);
                inside += System.nanoTime() - before;
            }
            calls += batch;
            now = System.nanoTime();
        } while (now - start < 500_000_000L);
        sink = sum;
        say((double) inside / calls);
    }

    static void say(double call) {
        System.out.printf("NS %.1f CLOCK %.2f%n", call, clockPair());
    }

    /** Nanoseconds of two reads of the clock. */
    static double clockPair() {
        final int pairs = 200_000;
        long sum = 0;
        long start = System.nanoTime();
        for (int i = 0; i < pairs; i++) {
            sum += System.nanoTime() - System.nanoTime();
        }
        long end = System.nanoTime();
        sink = sum;
        return (double) (end - start) / pairs;
    }
}
