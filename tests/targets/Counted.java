import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.locks.LockSupport;

/** Waits for monitors, waits in them, rests in other ways and loads classes, and knows how often. */
public class Counted {
    static final int TIMES = 20;
    static final Object LOCK = new Object();
    static final Object SIGNAL = new Object();
    static volatile Thread waiter;
    static volatile int held;
    static volatile boolean over;
    static boolean signalled;

    /** Loaded again and again, by a loader of its own each time. */
    public static class Copy {
        static int value = 1;
    }

    static class Loader extends ClassLoader {
        final byte[] bytes;

        Loader(byte[] bytes) {
            super(Counted.class.getClassLoader());
            this.bytes = bytes;
        }

        /** Without asking another first, but for what is not a copy. */
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.equals("Counted$Copy") ? define() : super.loadClass(name, resolve);
        }

        Class<?> define() {
            return defineClass("Counted$Copy", bytes, 0, bytes.length);
        }
    }

    static byte[] bytes;

    static void root(Object argument) {
        blocks();
        waits();
        loads();
        rests();
    }

    /** Enters a monitor that another thread has until it sees that this one waits for it. */
    static void blocks() {
        waiter = Thread.currentThread();
        for (int round = 1; round <= TIMES; round++) {
            while (held != round) {
                Thread.onSpinWait();
            }
            enter();
        }
        waiter = null;
    }

    static void enter() {
        synchronized (LOCK) {
            held = 0;
        }
    }

    static void waits() {
        waiter = Thread.currentThread();
        for (int round = 0; round < TIMES; round++) {
            await();
        }
        waiter = null;
    }

    static void await() {
        synchronized (SIGNAL) {
            while (!signalled) {
                try {
                    SIGNAL.wait();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
            signalled = false;
        }
    }

    static void loads() {
        for (int round = 0; round < TIMES; round++) {
            load();
        }
    }

    static void load() {
        try {
            Class.forName("Counted$Copy", true, new Loader(bytes));
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    static void rests() {
        sleptNs = parkedNs = socketNs = fileNs = 0;
        for (int round = 0; round < TIMES; round++) {
            try {
                sleep();
                park();
                ask();
                write();
            } catch (InterruptedException | IOException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    static void sleep() throws InterruptedException {
        long begun = System.nanoTime();
        Thread.sleep(1);
        sleptNs += System.nanoTime() - begun;
    }

    static void park() {
        long begun = System.nanoTime();
        LockSupport.parkNanos(1_000_000);
        parkedNs += System.nanoTime() - begun;
    }

    static void ask() throws IOException {
        long begun = System.nanoTime();
        server.getOutputStream().write(1);
        server.getInputStream().read();
        socketNs += System.nanoTime() - begun;
    }

    static void write() throws IOException {
        long begun = System.nanoTime();
        file.write(1);
        fileNs += System.nanoTime() - begun;
    }

    /** How long the latest root call rested, by its own clock. */
    static volatile long sleptNs;
    static volatile long parkedNs;
    static volatile long socketNs;
    static volatile long fileNs;
    /** To whoever answers each byte with one. */
    static Socket server;
    static OutputStream file;

    static void serve() throws IOException {
        ServerSocket listening = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        server = new Socket(listening.getInetAddress(), listening.getLocalPort());
        Socket client = listening.accept();
        Thread thread = new Thread(() -> {
            try {
                for (int asked = 0; asked >= 0; asked = client.getInputStream().read()) {
                    if (asked > 0) {
                        Thread.sleep(1);
                        client.getOutputStream().write(asked);
                    }
                }
            } catch (InterruptedException | IOException e) {
                throw new IllegalStateException(e);
            }
        });
        thread.setDaemon(true);
        thread.start();
        File written = File.createTempFile("counted", null);
        file = new FileOutputStream(written);
        written.delete();
    }

    /** Holds the lock for one who comes, once for each round. */
    static void hold() {
        for (int round = 1; round <= TIMES; round++) {
            while (waiter == null && !over) {
                Thread.onSpinWait();
            }
            synchronized (LOCK) {
                held = round;
                Thread one = waiter;
                while (one != null && one.getState() != Thread.State.BLOCKED) {
                    Thread.onSpinWait();
                }
            }
            while (held == round) {
                Thread.onSpinWait();
            }
        }
    }

    /** Wakes one who waits, once for each round. */
    static void signal() {
        for (int round = 0; round < TIMES; round++) {
            Thread one = waiter;
            while (one == null || one.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
                one = waiter;
            }
            synchronized (SIGNAL) {
                signalled = true;
                SIGNAL.notify();
            }
            while (isSignalled()) {
                Thread.onSpinWait();
            }
        }
    }

    static boolean isSignalled() {
        synchronized (SIGNAL) {
            return signalled;
        }
    }

    /** A root call, in a thread of its own, with others that make it wait. */
    static void round(boolean virtual) throws Exception {
        Thread helper = new Thread(() -> {
            hold();
            signal();
        });
        helper.start();
        Thread caller = thread(virtual, () -> root(null));
        caller.join();
        helper.join();
    }

    static Thread thread(boolean virtual, Runnable work) throws Exception {
        if (virtual) {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        }
        Thread thread = new Thread(work);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        boolean virtual = arguments.length > 0;
        try (InputStream in = Counted.class.getResourceAsStream("Counted$Copy.class")) {
            bytes = in.readAllBytes();
        }
        serve();
        round(virtual);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
            round(virtual);
            System.out.println("DONE " + sleptNs + " " + parkedNs + " " + socketNs + " " + fileNs);
        }
        over = true;
    }
}
