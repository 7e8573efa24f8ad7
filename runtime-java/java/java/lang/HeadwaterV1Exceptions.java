package java.lang;

import static java.lang.HeadwaterV1.MAX_PAYLOAD;

/**
 * Exceptions inside the call graph, each once: where it is made, or, if it was made elsewhere or ahead, where it first comes to light each time that it is
 * thrown. The JVM has some ready for code that throws often, and those of programs that do the same are not made each time either.
 *
 * <p>A thread remembers the latest few by their hashes: to be remembered keeps nothing alive.
 */
final class HeadwaterV1Exceptions {
    /** As the crate headwater-protocol has it; a test compares them. */
    private static final int COUNTER_EXCEPTIONS = 49;
    /** So many are remembered: one that is on its way through {@code finally} blocks, in which others are made and caught. */
    private static final int REMEMBERED = 4;
    /** It was made inside the call graph, and has been counted for that. */
    private static final long IS_MADE = 1L << 32;
    /** It has been caught: if it comes again, it has been thrown again. */
    private static final long IS_CAUGHT = 1L << 33;

    /** Whether exceptions are counted now; probes that tell of them may be there all the same. */
    static boolean counted;

    private HeadwaterV1Exceptions() {}

    /** @param kind as in {@link HeadwaterV1} */
    static void see(HeadwaterV1Thread thread, Object exception, int kind) {
        try {
            if (remember(thread, System.identityHashCode(exception), kind)) {
                count(thread, exception.getClass());
            }
        } catch (StackOverflowError | OutOfMemoryError ignored) {
            // The program's exception goes its way.
        }
    }

    /** Whether it is to be counted. */
    private static boolean remember(HeadwaterV1Thread thread, int hash, int kind) {
        long[] latest = thread.exceptions;
        if (latest == null) {
            HeadwaterV1Counters.mark(thread);
            latest = new long[REMEMBERED];
            HeadwaterV1Counters.skip(thread);
            thread.exceptions = latest;
        }
        long caught = kind == HeadwaterV1.EXCEPTION_CAUGHT ? IS_CAUGHT : 0;
        for (int at = 0; at < REMEMBERED; at++) {
            long known = latest[at];
            if ((int) known == hash) {
                latest[at] = known & ~IS_CAUGHT | caught;
                return (known & (IS_MADE | IS_CAUGHT)) == IS_CAUGHT;
            }
        }
        for (int at = REMEMBERED - 1; at > 0; at--) {
            latest[at] = latest[at - 1];
        }
        latest[0] = hash & 0xffffffffL | caught | (kind == HeadwaterV1.EXCEPTION_MADE ? IS_MADE : 0);
        return true;
    }

    private static void count(HeadwaterV1Thread thread, Class<?> type) {
        int depth = thread.depth;
        thread.depth = -depth;
        long number;
        try {
            number = HeadwaterV1.classNumber(type);
        } finally {
            thread.depth = depth;
        }
        HeadwaterV1Chunks.note(thread, COUNTER_EXCEPTIONS, number & MAX_PAYLOAD);
    }
}
