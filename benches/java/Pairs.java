import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Calls a method that does next to nothing: below the root, outside it, and below it on several threads at a time. Says what one
 * call takes. Ends with its standard input.
 */
public class Pairs {
    static final int CALLS = 200_000;
    static final int SLICES = 50;
    static final int CROWD = 8;
    /** Read in each iteration, as a program's loops have something to read: nothing the probes read stays in a register. */
    static volatile boolean done;
    static volatile int sink;

    static int root(int calls) {
        int sum = 0;
        for (int i = 0; i < calls && !done; i++) {
            sum += leaf(i);
        }
        return sum;
    }

    static int outside(int calls) {
        int sum = 0;
        for (int i = 0; i < calls && !done; i++) {
            sum += leaf(i);
        }
        return sum;
    }

    static int leaf(int x) {
        return x * 31 + (x >>> 3);
    }

    public static void main(String[] args) throws Exception {
        Thread reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Only the end is of interest.
                }
            } catch (java.io.IOException end) {
                // As good as an end.
            }
            System.exit(0);
        });
        reader.setDaemon(true);
        reader.start();
        ExecutorService workers = Executors.newFixedThreadPool(CROWD);
        int cores = Runtime.getRuntime().availableProcessors();
        for (;;) {
            // Whoever reads the events catches up with the round before.
            Thread.sleep(50);
            // This thread is never inside the root, the worker has been.
            double never = outsideRound();
            Slice inside = workers.submit(Pairs::insideRound).get();
            double been = workers.submit(Pairs::outsideRound).get();
            System.out.printf("ROUND %.3f %.3f %.3f %.3f %.4f %.4f %.4f%n", inside.call, never, been, inside.clock,
                    rate(workers, 1), rate(workers, cores), rate(workers, CROWD));
        }
    }

    /** Nanoseconds of a call inside the root and of two reads of the clock, one right after the other. */
    static class Slice {
        final double call;
        final double clock;

        Slice(double call, double clock) {
            this.call = call;
            this.clock = clock;
        }
    }

    /** Of many slices the one in the middle by their ratio: what disturbs the machine for longer than a slice meets both alike. */
    static Slice insideRound() {
        List<Slice> slices = new ArrayList<>();
        for (int i = 0; i < SLICES; i++) {
            long start = System.nanoTime();
            sink = root(CALLS / SLICES);
            double call = (double) (System.nanoTime() - start) / (CALLS / SLICES);
            slices.add(new Slice(call, clockPair()));
        }
        slices.sort(Comparator.comparingDouble(slice -> slice.call / slice.clock));
        return slices.get(SLICES / 2);
    }

    /** Nanoseconds a call, of the fastest slice: what takes so little is easily doubled by what else the processor does. */
    static double outsideRound() {
        double fastest = Double.MAX_VALUE;
        for (int i = 0; i < SLICES; i++) {
            long start = System.nanoTime();
            sink = outside(CALLS / SLICES);
            fastest = Math.min(fastest, (double) (System.nanoTime() - start) / (CALLS / SLICES));
        }
        return fastest;
    }

    /** Nanoseconds of two reads of the clock. */
    static double clockPair() {
        long sum = 0;
        long start = System.nanoTime();
        for (int i = 0; i < CALLS / SLICES / 2; i++) {
            sum += System.nanoTime() - System.nanoTime();
        }
        long end = System.nanoTime();
        sink = (int) sum;
        return (double) (end - start) / (CALLS / SLICES / 2);
    }

    /** Calls a nanosecond, of so many threads together. */
    static double rate(ExecutorService workers, int threads) throws Exception {
        Callable<Long> work = () -> {
            long calls = 0;
            long start = System.nanoTime();
            while (System.nanoTime() - start < 60_000_000) {
                sink = root(CALLS / 20);
                calls += CALLS / 20;
            }
            return calls;
        };
        long start = System.nanoTime();
        List<Future<Long>> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            running.add(workers.submit(work));
        }
        long calls = 0;
        for (Future<Long> each : running) {
            calls += each.get();
        }
        return (double) calls / (System.nanoTime() - start);
    }
}
