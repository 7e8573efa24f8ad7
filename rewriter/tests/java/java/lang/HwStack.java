package java.lang;

/** Probes that know which calls are open: whatever is left must be the latest call that was entered. */
public class HwStack {
    private static Thread observed;
    private static int[] open = new int[1 << 16];
    private static int depth;
    private static long entered;
    private static long left;
    private static long thrown;
    /** Calls that ended without a probe: their caller ended first. */
    private static long lost;
    /** Exits from calls that were not open. */
    private static long unmatched;

    /** Returns what stands for the call. */
    public static Object enter(int id) {
        if (Thread.currentThread() != observed) {
            return null;
        }
        entered++;
        open[depth++] = id;
        return new int[] {id};
    }

    public static void exit(Object token, int id) {
        if (Thread.currentThread() == observed) {
            left++;
            close(token, id);
        }
    }

    public static void thrown(Object token, int id) {
        if (Thread.currentThread() == observed) {
            thrown++;
            close(token, id);
        }
    }

    private static void close(Object token, int id) {
        int at = depth - 1;
        while (at >= 0 && open[at] != id) {
            at--;
        }
        if (at < 0 || token != null && ((int[]) token)[0] != id) {
            unmatched++;
        } else {
            lost += depth - 1 - at;
            depth = at;
        }
    }

    /** Counts from here on the calls of the current thread. */
    public static void begin() {
        observed = Thread.currentThread();
        depth = 0;
        entered = left = thrown = lost = unmatched = 0;
    }

    /** What was counted: calls entered, left, left by an exception, lost; exits that match no call. */
    public static String end() {
        observed = null;
        return entered + " " + left + " " + thrown + " " + (lost + depth) + " " + unmatched;
    }
}
