import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** Threads that call a root over and over, until a line is read. Arguments: how many; and whether they pause between two calls. */
public class Clocked {
    static volatile boolean done;
    static volatile int sink;

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        boolean pauses = args.length > 1;
        CountDownLatch started = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(() -> {
                started.countDown();
                while (!done) {
                    sink = root(20);
                    if (pauses) {
                        LockSupport.parkNanos(1_000_000);
                    }
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        started.await();
        System.out.println("READY");
        System.in.read();
        done = true;
    }

    static int root(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += middle(i);
        }
        return sum;
    }

    static int middle(int n) {
        return leaf(n) + leaf(n + 1);
    }

    static int leaf(int n) {
        return n * 31;
    }
}
