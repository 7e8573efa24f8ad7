package java.lang;

/** A thread's calls that were open when recording began. */
final class HeadwaterV1Open {
    /** So long a thread may look at its stack whenever it enters a method, in ns, */
    private static final long AT_ONCE = 300_000_000;
    /** and then for one part in so many of the time: of calls that follow each other closely it misses what comes between two looks. */
    private static final int PART = 20;

    /** Of these methods, the outermost first. */
    final int[] methods;
    private long looked;
    private long due;

    HeadwaterV1Open(int[] methods) {
        this.methods = methods;
    }

    /** Whether the thread may look at its stack. */
    boolean mayLook() {
        return looked <= AT_ONCE || HeadwaterV1Clock.stopwatch() - due >= 0;
    }

    /** It has done so, for so long, up to this moment. */
    void hasLooked(long ns, long now) {
        looked += ns;
        due = now + (PART - 1) * ns;
    }
}
