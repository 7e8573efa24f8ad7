import com.sun.management.ThreadMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/** Makes objects, and knows how many, of which class, in which line, and of the JVM how large each is. */
public class Making {
    static final int TIMES = 200;
    static final ThreadMXBean JVM = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    static final RuntimeException READY = new RuntimeException("ready");

    static class Point {
        final int x;
        final long y;

        Point(int x, long y) {
            this.x = x;
            this.y = y;
        }
    }

    static class Pair {
        final Point one;

        Pair(Point one) {
            this.one = one;
        }
    }

    static class Failing extends Point {
        final byte more = 1;

        Failing(int x) {
            super(fail(x), x);
        }

        static int fail(int x) {
            throw READY;
        }
    }

    static class Base {
        final int[] values;

        Base(int[] values) {
            this.values = values;
        }
    }

    static class Derived extends Base {
        Derived(int length) {
            super(new int[length]); // super
        }
    }

    static volatile Object kept;
    /** Enough for C2, which does without objects that do not escape. */
    static int often;
    static long sum;

    static void root() {
        for (int time = 0; time < TIMES; time++) {
            points(time);
            pair(time);
            arrays(time % 100);
            nested(time % 10);
            failing(time);
            kept = new Derived(time % 7); // derived
            lambda(time);
        }
        large();
        long fleeting = 0;
        for (int time = 0; time < often; time++) {
            fleeting += fleeting(time);
        }
        sum = fleeting;
    }

    static void points(int time) {
        kept = new Point(time, new Point(time, 1).y); // points
    }

    static void pair(int time) {
        kept = new Pair(time > 5 ? new Point(time, 1) : null); // pair
    }

    static void arrays(int length) {
        kept = new boolean[length]; // boolean
        kept = new char[length]; // char
        kept = new float[length]; // float
        kept = new double[length]; // double
        kept = new byte[length]; // byte
        kept = new short[length]; // short
        kept = new int[length]; // int
        kept = new long[length]; // long
        kept = new Point[length]; // reference
        kept = new int[length][]; // inner
    }

    static void nested(int length) {
        kept = new long[3][2][length]; // nested
        kept = new int[0][5]; // none
        kept = new char[2][3][]; // partial
    }

    /** Neither an object whose constructor throws is lost, nor is an array counted that is not made. */
    static void failing(int time) {
        try {
            kept = new Failing(time); // failing
        } catch (RuntimeException ready) {
            kept = ready;
        }
        try {
            kept = new int[-1 - time]; // negative
        } catch (NegativeArraySizeException e) {
            kept = null;
        }
    }

    static void lambda(int time) {
        Supplier<Point> made = () -> new Point(time, 2); // lambda
        kept = made.get();
    }

    static void large() {
        kept = new byte[20_000_000]; // large
    }

    static int fleeting(int time) {
        Point point = new Point(time, 3); // fleeting
        return (int) (point.x + point.y);
    }

    static long allocated() {
        return JVM.getThreadAllocatedBytes(Thread.currentThread().getId());
    }

    /** What the JVM says that something takes: now and then it allocates for itself. */
    static long size(Supplier<?> made) {
        long least = Long.MAX_VALUE;
        for (int round = 0; round < 5; round++) {
            long before = allocated();
            kept = made.get();
            least = Math.min(least, allocated() - before);
        }
        return least;
    }

    /** Of all lengths that there are in a root call. */
    static long sizes(IntFunction<?> made, int lengths, long none) {
        long all = 0;
        for (int time = 0; time < TIMES; time++) {
            int length = time % lengths;
            all += size(() -> made.apply(length)) - none;
        }
        return all;
    }

    static void say(String site, String type, long objects, long bytes) {
        System.out.println("SAID " + site + " " + type + " " + objects + " " + bytes);
    }

    /** Of so many root calls. */
    static void say(int calls) {
        Object same = new Object();
        long none = size(() -> same);
        long times = (long) calls * TIMES;
        long point = size(() -> new Point(1, 2)) - none;
        say("points", "Making$Point", 2 * times, 2 * times * point);
        long pair = size(() -> new Pair(null)) - none;
        say("pair", "Making$Pair", times, times * pair);
        say("pair", "Making$Point", times - 6 * calls, (times - 6 * calls) * point);
        say("boolean", "boolean[]", times, calls * sizes(boolean[]::new, 100, none));
        say("char", "char[]", times, calls * sizes(char[]::new, 100, none));
        say("float", "float[]", times, calls * sizes(float[]::new, 100, none));
        say("double", "double[]", times, calls * sizes(double[]::new, 100, none));
        say("byte", "byte[]", times, calls * sizes(byte[]::new, 100, none));
        say("short", "short[]", times, calls * sizes(short[]::new, 100, none));
        say("int", "int[]", times, calls * sizes(int[]::new, 100, none));
        say("long", "long[]", times, calls * sizes(long[]::new, 100, none));
        say("reference", "Making$Point[]", times, calls * sizes(Point[]::new, 100, none));
        say("inner", "int[][]", times, calls * sizes(int[][]::new, 100, none));
        say("nested", "long[][][]", times, times * (size(() -> new long[3][][]) - none));
        say("nested", "long[][]", 3 * times, 3 * times * (size(() -> new long[2][]) - none));
        say("nested", "long[]", 6 * times, 6 * calls * sizes(long[]::new, 10, none));
        say("none", "int[][]", times, times * (size(() -> new int[0][]) - none));
        say("partial", "char[][][]", times, times * (size(() -> new char[2][][]) - none));
        say("partial", "char[][]", 2 * times, 2 * times * (size(() -> new char[3][]) - none));
        say("failing", "Making$Failing", times, times * (size(Making::failed) - none));
        say("derived", "Making$Derived", times, times * (size(() -> new Derived(0)) - size(() -> new int[0])));
        say("super", "int[]", times, calls * sizes(int[]::new, 7, none));
        say("lambda", "Making$Point", times, times * point);
        say("large", "byte[]", calls, calls * (size(() -> new byte[20_000_000]) - none));
        say("fleeting", "Making$Point", (long) calls * often, calls * often * point);
    }

    static Object failed() {
        try {
            return new Failing(1);
        } catch (RuntimeException ready) {
            return ready;
        }
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        often = Integer.parseInt(arguments[1]);
        boolean virtual = arguments.length > 2;
        say(threads);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = in.readLine(); !line.equals("quit"); line = in.readLine()) {
            Thread[] all = new Thread[threads];
            for (int i = 0; i < threads; i++) {
                Runnable work = Making::root;
                if (virtual) {
                    all[i] = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
                } else {
                    all[i] = new Thread(work);
                    all[i].start();
                }
            }
            for (Thread thread : all) {
                thread.join();
            }
            System.out.println("DONE");
        }
    }
}
