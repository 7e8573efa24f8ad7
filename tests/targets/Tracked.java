import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Loads a class in its root, and has garbage collected, when it is told to. */
public final class Tracked {
    static final class Late {
        static int twice(int n) {
            return 2 * n;
        }
    }

    static int root(int n) {
        return n > 0 ? Late.twice(n) : 0;
    }

    static byte[][] garbage() {
        byte[][] made = new byte[64][];
        for (int i = 0; i < made.length; i++) {
            made[i] = new byte[100_000];
        }
        return made;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader told = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = told.readLine(); line != null && !line.equals("quit"); line = told.readLine()) {
            switch (line) {
                case "go" -> System.out.println("DONE " + root(21));
                case "collect" -> {
                    int made = garbage().length;
                    System.gc();
                    System.out.println("COLLECTED " + made);
                }
                default -> System.out.println("?");
            }
        }
    }
}
