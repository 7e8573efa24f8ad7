import java.io.BufferedReader;
import java.io.InputStreamReader;

/** A root whose time is a hundred and fifty calls below it, deeper than the flight recorder keeps stacks by itself. It is called until a line comes. */
public final class Depths {
    private static final int LEVELS = 150;
    private static volatile boolean over;
    static long sum;

    private Depths() {}

    public static void main(String[] arguments) throws Exception {
        Thread caller = new Thread(() -> {
            while (!over) {
                root();
            }
        });
        caller.start();
        System.out.println("READY");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        over = true;
        caller.join();
        System.out.println("OVER");
    }

    static void root() {
        down(LEVELS);
    }

    static void down(int levels) {
        if (levels > 0) {
            down(levels - 1);
            sum++;
        } else {
            bottom();
        }
    }

    static void bottom() {
        for (int i = 0; i < 3_000_000; i++) {
            sum = sum * 31 + i;
        }
    }
}
