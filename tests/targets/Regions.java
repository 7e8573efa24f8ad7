import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.function.IntUnaryOperator;

/** Methods and lines that are entered in every way, and count how often. Commands on standard input: go, quit. */
public class Regions {
    static long result;
    static long loops, falls, throwing, caught, recursive, outer, inner, lambda, virtual;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            go();
            System.out.println("DONE");
        }
        System.out.println("COUNT " + loops + " loop");
        System.out.println("COUNT " + falls + " whole loop");
        System.out.println("COUNT " + throwing + " throwing");
        System.out.println("COUNT " + caught + " caught");
        System.out.println("COUNT " + recursive + " recursive");
        System.out.println("COUNT " + outer + " outer");
        System.out.println("COUNT " + inner + " inner");
        System.out.println("COUNT " + lambda + " lambda");
        System.out.println("COUNT " + virtual + " threads");
        System.out.println("RESULT " + result);
        System.out.println("BYE");
    }

    static void go() throws Exception {
        for (int i = 1; i <= 20; i++) {
            loop(i);
            tryTo(i);
            recursive++;
            result += recurse(i);
            outer++;
            result += outer(i);
        }
        IntUnaryOperator each = i -> {
            lambda++; // lambda
            return i + 1;
        };
        for (int i = 0; i < 7; i++) {
            result += each.applyAsInt(i);
        }
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int n = 0; n < 100; n++) {
                    elsewhere(n);
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void loop(int times) {
        falls++; // whole loop begins
        for (int i = 0; i < times; i++) {
            loops++; // loop begins
            if (i % 3 == 0) {
                result++;
                continue;
            }
            result += i; // loop ends
        }
        result--; // whole loop ends
    }

    static void tryTo(int i) {
        try {
            throwing(i);
        } catch (IllegalStateException e) {
            caught++; // caught
        }
    }

    static void throwing(int i) {
        throwing++; // throwing begins
        if (i % 2 == 0) {
            throw new IllegalStateException();
        }
        result += i; // throwing ends
    }

    static int recurse(int depth) {
        return depth == 0 ? 1 : 1 + recurse(depth - 1);
    }

    static int outer(int i) {
        int sum = 0;
        for (int n = 0; n < 3; n++) {
            inner++;
            sum += inner(i);
        }
        return sum;
    }

    static int inner(int i) {
        return i * 31;
    }

    static synchronized void elsewhere(int n) {
        virtual++;
        result += n;
    }
}
