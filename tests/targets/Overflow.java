import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Roots that overflow the stack, at ever other depths and in ever other frames. Commands on standard input: go, quit. */
public class Overflow {
    static int result;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            for (int i = 0; i < 100; i++) {
                nested(i);
                // Outside the root: not to be counted.
                result += settled();
            }
            System.out.println("DONE");
        }
    }

    /** The root is called at another depth each time. */
    static void nested(int levels) {
        if (levels > 0) {
            nested(levels - 1);
        } else {
            root();
        }
    }

    static void root() {
        try {
            result += deep(1, 2, 3);
        } catch (StackOverflowError e) {
            result++;
        }
        result += settled();
    }

    static int deep(int a, long b, double c) {
        return settle(a) + (a % 3 == 0 ? deeper(a + 1) : deep(a + 1, b, c)) + 1;
    }

    static int deeper(int a) {
        return settle(a) + deep(a, a, a) + 1;
    }

    /** Called and left near the end of the stack: there its probes overflow too. */
    static int settle(int a) {
        return a & 1;
    }

    static int settled() {
        return 1;
    }
}
