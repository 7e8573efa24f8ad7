package java.lang;

/** Probes that know which calls are open: whatever is left must be the latest call that was entered. */
public class HwStack {
    private static Thread observed;
    private static int[] open = new int[1 << 16];
    /** Of each open call: how many instructions were about to be executed, and how many exceptions were caught. */
    private static long[] steps = new long[1 << 16];
    private static int[] caught = new int[1 << 16];
    private static int depth;
    private static long entered;
    private static long left;
    private static long thrown;
    /** Calls that ended without a probe: their caller ended first. */
    private static long lost;
    /** Exits from calls that were not open. */
    private static long unmatched;
    /** Calls that executed another number of instructions than they say. */
    private static long miscounted;

    /** Returns what stands for the call. */
    public static Object enter(int id) {
        if (Thread.currentThread() != observed) {
            return null;
        }
        entered++;
        steps[depth] = 0;
        caught[depth] = 0;
        open[depth++] = id;
        return new int[] {id};
    }

    public static void exit(Object token, int id) {
        if (Thread.currentThread() == observed) {
            left++;
            close(token, id);
        }
    }

    public static void exit(Object token, long executed, int id) {
        if (Thread.currentThread() == observed) {
            compare(executed, id, 0);
            exit(token, id);
        }
    }

    public static void thrown(Object token, long executed, int id) {
        if (Thread.currentThread() == observed) {
            compare(executed, id, 1);
            thrown(token, id);
        }
    }

    /** An instruction is about to be executed; its id is twice its method's, and odd where a handler begins. */
    public static void before(int id) {
        if (Thread.currentThread() == observed) {
            // Calls that ended without a probe.
            while (depth > 0 && open[depth - 1] != id >> 1) {
                lost++;
                depth--;
            }
            steps[depth - 1]++;
            caught[depth - 1] += id & 1;
        }
    }

    /** Each exception may have interrupted a block, which counts as a whole. */
    private static void compare(long executed, int id, int thrown) {
        int at = depth - 1;
        while (at >= 0 && open[at] != id) {
            at--;
        }
        long blocks = at < 0 ? 0 : 65535L * (caught[at] + thrown);
        if (at < 0 || executed < steps[at] || executed > steps[at] + blocks) {
            miscounted++;
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
        entered = left = thrown = lost = unmatched = miscounted = 0;
    }

    /**
     * What was counted: calls entered, left, left by an exception, lost; exits that match no call; calls that say they executed what they
     * did not.
     */
    public static String end() {
        observed = null;
        return entered + " " + left + " " + thrown + " " + (lost + depth) + " " + unmatched + " " + miscounted;
    }
}
