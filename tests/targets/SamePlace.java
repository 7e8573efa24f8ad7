import java.util.ArrayList;
import java.util.List;

/**
 * Threads whose numbers are the same but for a multiple of 64, which take turns: two of them call the root, the third what the root calls.
 * Argument: how many turns each. Commands: go, quit.
 */
public class SamePlace {
    static final int PLACES = 64;
    static final Object LOCK = new Object();
    static int turn;
    static long result;

    @SuppressWarnings("deprecation")
    public static void main(String[] args) throws Exception {
        int turns = Integer.parseInt(args[0]);
        System.out.println("READY");
        for (int c; (c = System.in.read()) >= 0 && c != 'q';) {
            if (c != '\n') {
                continue;
            }
            turn = 0;
            List<Thread> threads = new ArrayList<>();
            while (threads.size() < 3) {
                int place = threads.size();
                Thread thread = new Thread(() -> take(place, turns));
                // Threads have their numbers before they are started.
                if (threads.isEmpty() || (thread.getId() - threads.get(0).getId()) % PLACES == 0) {
                    threads.add(thread);
                }
            }
            for (Thread thread : threads) {
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            System.out.println("ROUND " + result);
        }
    }

    static void take(int place, int turns) {
        for (int i = 0; i < turns; i++) {
            synchronized (LOCK) {
                while (turn % 3 != place) {
                    try {
                        LOCK.wait();
                    } catch (InterruptedException never) {
                        throw new IllegalStateException(never);
                    }
                }
                result += place < 2 ? root(i) : leaf(i);
                turn++;
                LOCK.notifyAll();
            }
        }
    }

    static long root(int i) {
        return leaf(i) + leaf(i + 1);
    }

    static long leaf(int i) {
        return i & 3;
    }
}
