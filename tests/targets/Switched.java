import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.concurrent.locks.LockSupport;

/** Does the same things each time that it is told to, in a root call that goes on. */
public class Switched {
    static final int TIMES = 10;
    static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));
    static volatile Object kept;
    static volatile boolean held;
    static Thread holder;
    static byte[] bytes;

    /** Loaded again and again, by a loader of its own each time. */
    public static class Copy {
        static int value = 1;
    }

    static class Loader extends ClassLoader {
        Loader() {
            super(Switched.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.equals("Switched$Copy")
                    ? defineClass(name, bytes, 0, bytes.length)
                    : super.loadClass(name, resolve);
        }
    }

    /** Until it is told to return. */
    static void root() throws Exception {
        for (String line = IN.readLine(); !line.equals("return"); line = IN.readLine()) {
            work();
            System.out.println("DONE");
        }
    }

    static void work() throws Exception {
        allocate();
        fail();
        park();
        block();
        end();
        load();
        collect();
    }

    static void allocate() {
        for (int time = 0; time < TIMES; time++) {
            kept = new byte[1_000];
        }
    }

    static void fail() {
        for (int time = 0; time < TIMES; time++) {
            try {
                throw new IllegalStateException();
            } catch (IllegalStateException e) {
                kept = null;
            }
        }
    }

    static void park() {
        for (int time = 0; time < TIMES; time++) {
            LockSupport.parkNanos(1_000);
        }
    }

    /** Enters a monitor that another thread has until this one waits for it. */
    static void block() {
        Object lock = new Object();
        Thread waiting = Thread.currentThread();
        held = false;
        holder = new Thread(() -> {
            synchronized (lock) {
                held = true;
                while (waiting.getState() != Thread.State.BLOCKED) {
                    Thread.onSpinWait();
                }
            }
        });
        holder.start();
        while (!held) {
            Thread.onSpinWait();
        }
        synchronized (lock) {
            kept = lock;
        }
    }

    /** Apart, for the JVM takes a thread's monitor when it ends. */
    static void end() throws InterruptedException {
        holder.join();
    }

    static void load() throws ClassNotFoundException {
        Class.forName("Switched$Copy", true, new Loader());
    }

    static void collect() {
        System.gc();
    }

    public static void main(String[] arguments) throws Exception {
        try (InputStream in = Switched.class.getResourceAsStream("Switched$Copy.class")) {
            bytes = in.readAllBytes();
        }
        System.out.println("READY");
        for (String line = IN.readLine(); line != null && !line.equals("quit"); line = IN.readLine()) {
            root();
            System.out.println("RETURNED");
        }
    }
}
