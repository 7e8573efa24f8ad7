import java.util.TreeMap;

/** What the counting targets count with: their own calls, as long as the root is on this thread's stack. */
final class Counter {
    private static final TreeMap<String, long[]> COUNTS = new TreeMap<>();
    private static Thread rootThread;

    static synchronized void begin() {
        rootThread = Thread.currentThread();
    }

    static synchronized void end() {
        rootThread = null;
    }

    /** The method of this machine name, {@code a.b.C.m(I)V}, has been entered. */
    static synchronized void hit(String method) {
        if (Thread.currentThread() == rootThread) {
            COUNTS.computeIfAbsent(method, name -> new long[1])[0]++;
        }
    }

    static synchronized void print() {
        COUNTS.forEach((method, count) -> System.out.println("COUNT " + count[0] + " " + method));
    }
}
