import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Waits for a monitor and for a lock that another thread has, and knows how often, and for how long at least and at most: at least while the owner saw the
 * other wait, at most from before entering until it was in.
 */
public class Contended {
    static final int TIMES = 10;
    static final int HOLD_MS = 30;
    static final Guard MONITOR = new Guard();
    static final ReentrantLock LOCK = new ReentrantLock();

    static final class Guard {}

    static volatile Thread waiter;
    static volatile int held;
    static long least;
    static long most;

    static void root(boolean monitor) {
        for (int round = 1; round <= TIMES; round++) {
            while (held != round) {
                Thread.onSpinWait();
            }
            if (monitor) {
                enterMonitor();
            } else {
                enterLock();
            }
        }
    }

    static void enterMonitor() {
        long begin = System.nanoTime();
        synchronized (MONITOR) {
            most += System.nanoTime() - begin;
            held = 0;
        }
    }

    static void enterLock() {
        long begin = System.nanoTime();
        LOCK.lock();
        try {
            most += System.nanoTime() - begin;
            held = 0;
        } finally {
            LOCK.unlock();
        }
    }

    static void holdMonitor(int round) {
        synchronized (MONITOR) {
            keep(round, Thread.State.BLOCKED);
        }
    }

    static void holdLock(int round) {
        LOCK.lock();
        try {
            keep(round, Thread.State.WAITING);
        } finally {
            LOCK.unlock();
        }
    }

    /** Waits until the other waits, and lets it wait. */
    static void keep(int round, Thread.State state) {
        held = round;
        while (waiter.getState() != state || isHeldUp(waiter)) {
            Thread.onSpinWait();
        }
        long begin = System.nanoTime();
        try {
            Thread.sleep(HOLD_MS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        least += System.nanoTime() - begin;
    }

    /** Whether it waits for a profiler: for its own lock, or until what it calls is instrumented. */
    static boolean isHeldUp(Thread thread) {
        for (StackTraceElement frame : thread.getStackTrace()) {
            if (frame.getClassName().startsWith("java.lang.Headwater")) {
                return true;
            }
        }
        return false;
    }

    static void round(boolean monitor, boolean virtual) throws Exception {
        least = 0;
        most = 0;
        held = 0;
        Thread caller = start(virtual, () -> root(monitor));
        waiter = caller;
        for (int round = 1; round <= TIMES; round++) {
            if (monitor) {
                holdMonitor(round);
            } else {
                holdLock(round);
            }
            while (held != 0) {
                Thread.onSpinWait();
            }
        }
        caller.join();
        System.out.println((monitor ? "MONITOR " : "LOCK ") + TIMES + " " + least + " " + most);
    }

    static Thread start(boolean virtual, Runnable work) throws Exception {
        if (virtual) {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        }
        Thread thread = new Thread(work, "waiter");
        thread.start();
        return thread;
    }

    /** Another waits for a monitor for good. */
    static void stick() throws Exception {
        Object stuck = new Guard();
        Thread owner = new Thread(() -> keepForGood(stuck), "keeper");
        owner.setDaemon(true);
        owner.start();
        while (!isKept) {
            Thread.onSpinWait();
        }
        Thread other = new Thread(() -> enterForGood(stuck), "stuck");
        other.setDaemon(true);
        other.start();
        while (other.getState() != Thread.State.BLOCKED) {
            Thread.onSpinWait();
        }
        System.out.println("STUCK");
    }

    static volatile boolean isKept;

    static void keepForGood(Object stuck) {
        synchronized (stuck) {
            isKept = true;
            while (true) {
                java.util.concurrent.locks.LockSupport.park();
            }
        }
    }

    static void enterForGood(Object stuck) {
        synchronized (stuck) {
            throw new IllegalStateException("nobody has left it");
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
            if (line.equals("stick")) {
                stick();
                continue;
            }
            boolean virtual = line.endsWith("virtual");
            round(true, virtual);
            round(false, virtual);
            System.out.println("DONE");
        }
    }
}
