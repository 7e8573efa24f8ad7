import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Very many threads that call through very many classes, of very many loaders. Arguments: how many of each. At each line of its input every thread
 * makes a round of calls, and the sum of their times is said: of calls of the root, and of the threads' CPU.
 */
public final class Load {
    /** Calls of the root by each thread in a round. */
    static final int CALLS = 20;
    /** What each of them calls. */
    static final int STEPS = 50;

    private static Scale.Part[] parts;

    private Load() {}

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        parts = Scale.parts(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
        CyclicBarrier barrier = new CyclicBarrier(threads + 1);
        AtomicLong ns = new AtomicLong();
        for (int number = 0; number < threads; number++) {
            int first = number * STEPS;
            Scale.start(() -> {
                try {
                    for (int round = 0;; round++) {
                        barrier.await();
                        long began = System.nanoTime();
                        for (int call = 0; call < CALLS; call++) {
                            root(first + round * CALLS + call);
                        }
                        ns.addAndGet(System.nanoTime() - began);
                        barrier.await();
                    }
                } catch (Exception end) {
                    // The program ends.
                }
            });
        }
        System.out.println("READY");
        for (int c; (c = System.in.read()) >= 0 && c != 'q';) {
            if (c == '\n') {
                barrier.await();
                barrier.await();
                System.out.println("ROUND " + ns.getAndSet(0));
            }
        }
    }

    static int root(int from) {
        int sum = 0;
        for (int step = 0; step < STEPS; step++) {
            sum += own(parts[(from * 7919 + step) % parts.length].step(step));
        }
        return sum;
    }

    static int own(int x) {
        return x ^ x >>> 7;
    }
}
