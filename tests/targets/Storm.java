import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Short-lived threads that call the root once each. Arguments: platform or virtual, how many, and how often each calls a
 * leaf, half of them before and half after it has slept. Commands: go, quit.
 */
public class Storm {
    public static void main(String[] args) throws Exception {
        boolean virtual = args[0].equals("virtual");
        int threads = Integer.parseInt(args[1]);
        int leaves = Integer.parseInt(args[2]);
        System.out.println("READY");
        for (int c; (c = System.in.read()) >= 0 && c != 'q';) {
            if (c == '\n') {
                System.out.println("ROUND " + (virtual ? virtual(threads, leaves) : platform(threads, leaves)));
            }
        }
    }

    static long virtual(int threads, int leaves) throws Exception {
        // By reflection: this source is compiled on older JDKs, too.
        ExecutorService executor =
                (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        List<Future<Long>> results = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            results.add(executor.submit(() -> root(leaves)));
        }
        long sum = 0;
        for (Future<Long> result : results) {
            sum += result.get();
        }
        executor.shutdown();
        return sum;
    }

    static long platform(int threads, int leaves) throws Exception {
        long[] results = new long[threads];
        List<Thread> alive = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int index = i;
            Thread thread = new Thread(() -> results[index] = root(leaves));
            thread.start();
            alive.add(thread);
            if (alive.size() == 16) {
                for (Thread other : alive) {
                    other.join();
                }
                alive.clear();
            }
        }
        for (Thread other : alive) {
            other.join();
        }
        long sum = 0;
        for (long result : results) {
            sum += result;
        }
        return sum;
    }

    static long root(int leaves) {
        long sum = some(leaves / 2);
        try {
            Thread.sleep(1);
        } catch (InterruptedException end) {
            return -1;
        }
        return sum + some(leaves - leaves / 2);
    }

    static long some(int leaves) {
        long sum = 0;
        for (int i = 0; i < leaves; i++) {
            sum += leaf(i);
        }
        return sum;
    }

    static long leaf(int i) {
        return i & 3;
    }
}
