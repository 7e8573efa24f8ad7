import java.util.concurrent.locks.LockSupport;

/**
 * A root that does little but call a tiny method very often, which now and then calls another; the root calls that one too. Several
 * threads call the root again and again, check what it returns, and say at the end how often it was wrong, and how often the tiny
 * method was called. Commands: quit. With the argument `long` the root is {@code plain}, a call of which is long by its callees' number alone.
 */
public class Dense {
    private static volatile boolean ending;
    private static final java.util.concurrent.atomic.AtomicLong WRONG = new java.util.concurrent.atomic.AtomicLong();
    private static final java.util.concurrent.atomic.AtomicLong ROOTS = new java.util.concurrent.atomic.AtomicLong();

    public static void main(String[] args) throws Exception {
        boolean isLong = args.length > 0 && args[0].equals("long");
        java.util.function.IntSupplier called = isLong ? () -> plain(2_000_000) : () -> root(200);
        int expected = called.getAsInt();
        ROOTS.incrementAndGet();
        Thread[] callers = new Thread[isLong ? 1 : 2];
        for (int i = 0; i < callers.length; i++) {
            callers[i] = new Thread(() -> {
                while (!ending) {
                    if (called.getAsInt() != expected) {
                        WRONG.incrementAndGet();
                    }
                    ROOTS.incrementAndGet();
                    // The processors are for others, too.
                    LockSupport.parkNanos(1_000_000);
                }
            });
            callers[i].start();
        }
        System.out.println("READY");
        while (System.in.read() >= 0 && !ending) {
            // Any line, and the end, is the end.
            ending = true;
        }
        ending = true;
        for (Thread caller : callers) {
            caller.join();
        }
        System.out.println("WRONG " + WRONG);
        if (isLong) {
            System.out.println("COUNT " + ROOTS + " Dense.plain(I)I");
            return;
        }
        System.out.println("COUNT " + ROOTS + " Dense.root(I)I");
        System.out.println("COUNT " + ROOTS.get() * 200 * 50 + " Dense.tiny(I)I");
    }

    /** Calls {@code step} n times, and {@code last} once. */
    static int plain(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += step(i);
        }
        return last(sum);
    }

    static int step(int n) {
        return n * 31 ^ n >> 2;
    }

    static int last(int n) {
        return n + 1;
    }

    /** Calls {@code middle} n times, and {@code rare} once. */
    static int root(int n) {
        int sum = rare(n);
        for (int i = 0; i < n; i++) {
            sum += middle(i);
        }
        return sum;
    }

    /** Calls {@code tiny} fifty times: with one of fifty it comes to {@code rare}. */
    static int middle(int n) {
        int sum = 0;
        for (int i = 0; i < 50; i++) {
            sum += tiny(n * 50 + i);
        }
        return sum;
    }

    static int tiny(int n) {
        return n % 50 == 7 ? rare(n) : n * 31 ^ n >> 2;
    }

    /** Takes its time. */
    static int rare(int n) {
        int sum = n;
        for (int i = 0; i < 400; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }
}
