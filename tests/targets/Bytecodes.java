import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.function.IntUnaryOperator;

/** Executes instructions that its test can count by hand: javac makes the same of these methods on every JDK. */
public class Bytecodes {
    static final IllegalStateException FAILURE = new IllegalStateException();
    static final IntUnaryOperator LAMBDA = n -> n + 1;
    static int sum;

    static class Point {
        final int x;

        Point(int x) {
            this.x = x;
        }
    }

    static void root(int rounds) {
        sum += loop(rounds);
        sum += dense(0) + dense(1) + dense(7) + sparse(1000) + sparse(2);
        sum += caught(new int[4]) + caught(new int[3]);
        sum += outer(false) + outer(true);
        sum += last(false) + last(true);
        sum += fibonacci(5);
        sum += new Point(3).x;
        sum += LAMBDA.applyAsInt(3);
        sum += nested(3, 4);
    }

    static int loop(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i;
        }
        return sum;
    }

    static int nested(int n, int m) {
        int sum = 0;
        do {
            for (int i = 0; i < m; i++) {
                sum++;
            }
        } while (--n > 0);
        return sum;
    }

    static int dense(int n) {
        switch (n) {
            case 0:
                return 1;
            case 1:
                n++;
            default:
                return n;
        }
    }

    static int sparse(int n) {
        switch (n) {
            case 1000:
                return 1;
            case -1000:
                return 2;
            default:
                return 3;
        }
    }

    static int caught(int[] array) {
        try {
            return array[3];
        } catch (ArrayIndexOutOfBoundsException e) {
            return -1;
        }
    }

    static int outer(boolean fails) {
        try {
            thrower(fails);
            return 1;
        } catch (IllegalStateException e) {
            return 2;
        }
    }

    static void thrower(boolean fails) {
        if (fails) {
            throw FAILURE;
        }
    }

    /** An exception passes through it. */
    static int last(boolean fails) {
        try {
            through(fails);
        } catch (IllegalStateException e) {
            sum++;
        }
        return sum;
    }

    static void through(boolean fails) {
        try {
            thrower(fails);
        } finally {
            sum--;
        }
    }

    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static void run(boolean virtual, int rounds) throws Exception {
        Runnable work = () -> root(rounds);
        Thread thread;
        if (virtual) {
            thread = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        } else {
            thread = new Thread(work);
            thread.start();
        }
        thread.join();
    }

    public static void main(String[] arguments) throws Exception {
        boolean virtual = arguments.length > 0;
        run(virtual, 1);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
            run(virtual, Integer.parseInt(line));
            System.out.println("DONE");
        }
    }
}
