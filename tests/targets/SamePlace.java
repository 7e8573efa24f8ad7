import java.util.ArrayList;
import java.util.List;

/**
 * Threads that take turns. The numbers of the first three are the same but for a multiple of 64: two of them call the root, the third what
 * the root calls. The fourth has another number, and calls the root. Argument: how many turns each. Commands: go, quit.
 */
public class SamePlace {
    static final int PLACES = 64;
    static final int OUTSIDE = 2;
    static final int ELSEWHERE = 3;
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
            while (threads.size() <= ELSEWHERE) {
                int which = threads.size();
                Thread thread = new Thread(() -> take(which, turns));
                // Threads have their numbers before they are started.
                if (which == 0 || (thread.getId() - threads.get(0).getId()) % PLACES == 0 != (which == ELSEWHERE)) {
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

    static void take(int which, int turns) {
        for (int i = 0; i < turns; i++) {
            synchronized (LOCK) {
                while (turn % (ELSEWHERE + 1) != which) {
                    try {
                        LOCK.wait();
                    } catch (InterruptedException never) {
                        throw new IllegalStateException(never);
                    }
                }
                result += which == OUTSIDE ? leaf(i) : root(i);
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
