import java.util.concurrent.atomic.AtomicLong;

/** Two threads that compute, one in a virtual thread if there are such, and one that waits. */
public class Burning {
    static final AtomicLong SINK = new AtomicLong();
    static volatile boolean over;

    static void hot() {
        while (!over) {
            SINK.addAndGet(compute(10_000));
        }
    }

    static void warm() {
        while (!over) {
            SINK.addAndGet(compute(1_000));
        }
    }

    static long compute(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum += Integer.toString(i).hashCode();
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        Thread hot = new Thread(Burning::hot, "burner");
        hot.start();
        Runnable work = Burning::warm;
        Thread warm;
        try {
            warm = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        } catch (ReflectiveOperationException e) {
            warm = new Thread(work, "warmer");
            warm.start();
        }
        System.out.println("READY");
        while (System.in.read() != 'q') {
            // Until it is told to end.
        }
        over = true;
        hot.join();
        warm.join();
        System.out.println("RESULT " + (SINK.get() != 0));
    }
}
