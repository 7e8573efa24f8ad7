import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;

/** Many threads that enter the root now and then, and live until the end. Argument: how many. Commands: go, quit. */
public class ManyThreads {
    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        CyclicBarrier round = new CyclicBarrier(count + 1);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(() -> {
                try {
                    while (true) {
                        round.await();
                        root(3);
                        round.await();
                    }
                } catch (Exception end) {
                    // The barrier is broken: the program ends.
                }
            });
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
        System.out.println("READY");
        for (int c; (c = System.in.read()) >= 0 && c != 'q';) {
            if (c == '\n') {
                round.await();
                round.await();
                System.out.println("ROUND " + threads.size());
            }
        }
    }

    static int root(int n) {
        return n == 0 ? 0 : 1 + leaf(n) + root(n - 1);
    }

    static int leaf(int n) {
        return n * n;
    }
}
