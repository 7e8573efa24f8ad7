/** Calls the root again and again, checks what it returns, and says at the end how often it was wrong. Commands: quit. */
public class Beat {
    private static volatile boolean ending;

    public static void main(String[] args) throws Exception {
        int expected = root(20);
        Thread reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Any line, and the end, is the end.
                    ending = true;
                }
            } catch (java.io.IOException end) {
                // As good as an end.
            }
            ending = true;
        });
        reader.setDaemon(true);
        reader.start();
        System.out.println("READY");
        System.out.println("WRONG " + beat(expected));
    }

    /** No loop of the method that its thread begins with: with all that is compiled into it, it would seem to compute by itself. */
    private static long beat(int expected) {
        long wrong = 0;
        while (!ending) {
            if (root(20) != expected) {
                wrong++;
            }
        }
        return wrong;
    }

    static int root(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += middle(i);
        }
        return sum;
    }

    static int middle(int n) {
        return n == 0 ? 0 : leaf(n) + middle(n - 1);
    }

    static int leaf(int n) {
        return n * 31 ^ n >> 2;
    }
}
