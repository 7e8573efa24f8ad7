import java.lang.management.ManagementFactory;

/**
 * A root that waits half of its time and computes the other half; with an argument on a virtual thread, whose CPU time nobody knows. Commands: go
 * (prints the CPU time that its thread has used so far, in ns), quit.
 */
public class Waiting {
    static final Object LOCK = new Object();
    static volatile long sink;
    static boolean virtual;

    public static void main(String[] args) throws Exception {
        virtual = args.length > 0;
        System.out.println("READY");
        for (int c; (c = System.in.read()) >= 0 && c != 'q';) {
            if (c == '\n') {
                if (virtual) {
                    Runnable task = () -> {
                        try {
                            root();
                        } catch (InterruptedException e) {
                            throw new IllegalStateException(e);
                        }
                    };
                    ((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task)).join();
                } else {
                    root();
                }
                System.out.println("CPU " + ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime());
            }
        }
    }

    static void root() throws InterruptedException {
        waits(2_000);
        computes(1_000_000_000L);
    }

    static void waits(long milliseconds) throws InterruptedException {
        long end = System.nanoTime() + milliseconds * 1_000_000;
        synchronized (LOCK) {
            for (long left; (left = end - System.nanoTime()) > 0;) {
                LOCK.wait(left / 1_000_000 + 1);
            }
        }
    }

    /** Until so much CPU time is used, or, where that is not known, for so many rounds as take about as much. */
    static void computes(long nanoseconds) {
        long rounds = nanoseconds / 250_000;
        long end = virtual ? 0 : ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() + nanoseconds;
        while (virtual ? rounds-- > 0 : ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < end) {
            for (int i = 0; i < 10; i++) {
                sink += step(i);
            }
        }
    }

    static long step(int n) {
        long sum = n;
        for (int i = 0; i < 20_000; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }
}
