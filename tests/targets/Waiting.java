import java.lang.management.ManagementFactory;

/**
 * A root that waits half of its time and computes the other half. Commands: go (prints the CPU time that its thread has used so
 * far, in ns, and what was computed), quit.
 */
public class Waiting {
    static final Object LOCK = new Object();
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        for (int c; (c = System.in.read()) >= 0 && c != 'q';) {
            if (c == '\n') {
                root();
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

    /** Until so much CPU time is used. */
    static void computes(long nanoseconds) {
        long end = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() + nanoseconds;
        while (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < end) {
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
