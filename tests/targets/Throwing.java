import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.FutureTask;

/** Makes and throws exceptions in several ways, and knows how many of which class in which method. */
public class Throwing {
    static final int TIMES = 20;
    /** Enough for C2, which throws what it has ready then. */
    static final int OFTEN = 60_000;

    static class Mine extends RuntimeException {
        Mine(String message) {
            super(message);
        }
    }

    /** With a constructor that calls others of its own. */
    static class Special extends Mine {
        Special() {
            this("special");
        }

        Special(String message) {
            super(message);
        }
    }

    static class Wrapped extends Exception {
        Wrapped(Throwable cause) {
            super(cause);
        }
    }

    /** Made once, and thrown often. */
    static final Mine READY = new Mine("ready");

    static int caught;
    static int[] none = {};

    static void root(Object argument) {
        for (int time = 0; time < TIMES; time++) {
            try {
                make(time);
            } catch (Mine e) {
                caught++;
            }
            inside();
            outer();
            parse();
            task();
            kept(time);
        }
        for (int time = 0; time < OFTEN; time++) {
            ready();
            implicit(time);
        }
    }

    static void make(int time) {
        if (time >= 0) {
            throw new Special();
        }
    }

    /** Thrown and caught in one method. */
    static void inside() {
        try {
            throw new Mine("inside");
        } catch (Mine e) {
            caught++;
        }
    }

    /** One that comes through three methods, and is another then. */
    static void outer() {
        try {
            wrap();
        } catch (Wrapped e) {
            caught++;
        }
    }

    static void wrap() throws Wrapped {
        try {
            through();
        } catch (Mine e) {
            throw new Wrapped(e);
        }
    }

    static void through() {
        try {
            deepest();
        } catch (Mine e) {
            inside();
            throw e;
        } finally {
            inside();
        }
    }

    static void deepest() {
        synchronized (READY) {
            throw new Mine("deepest");
        }
    }

    /** Made by the JDK. */
    static void parse() {
        try {
            Integer.parseInt("x");
        } catch (NumberFormatException e) {
            caught++;
        }
    }

    /** Caught by the JDK. */
    static void task() {
        new FutureTask<Object>(() -> fail()).run();
    }

    static Object fail() {
        throw new Mine("fail");
    }

    /** Made, and not thrown. */
    static Throwable kept(int time) {
        return new Throwable("kept");
    }

    static void ready() {
        try {
            again();
        } catch (Mine e) {
            caught++;
        }
    }

    static void again() {
        throw READY;
    }

    /** Thrown by the JVM. */
    static void implicit(int at) {
        try {
            none[at]++;
        } catch (ArrayIndexOutOfBoundsException e) {
            caught++;
        }
    }

    public static void main(String[] arguments) throws Exception {
        root(null);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
            Runnable work = () -> root(null);
            if (arguments.length > 0) {
                Thread thread = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
                thread.join();
            } else {
                work.run();
            }
            System.out.println("DONE " + TIMES + " " + OFTEN);
        }
    }
}
