package java.lang;

import static java.lang.HeadwaterV1.MAX_PAYLOAD;

import jdk.internal.misc.Unsafe;

/**
 * What threads tell of at each event, because it moves all the time: what they have allocated, and what the kernel counts of them. The latter
 * is read by the agent, which keeps each thread's latest reading; that of a virtual thread is its carrier's.
 */
final class HeadwaterV1Counters {
    /** As the crate headwater-protocol has it; a test compares them. The others follow. */
    private static final int COUNTER_INSTRUCTIONS = 54;
    /** How many of them there are. */
    private static final int BY_KERNEL = 4;
    // What the agent is to do with the counters, as it numbers that.
    /** Says by how much they have moved since the latest reading, which this becomes; where that is, or 0. */
    private static final int MOVED = 0;
    /** What they have moved by up to here has been told, or is not the thread's own. */
    private static final int GO_ON = 1;
    /** What they move by from here on is the profiler's... */
    private static final int MARK = 2;
    /** ...up to here. */
    private static final int SKIP = 3;
    /** Two readings have nothing between them but this: it is what reading takes. */
    private static final int CALIBRATE = 4;
    /** Readings after which that is compiled, and more. */
    private static final int READINGS = 20_000;
    /** Nanoseconds that these may take, where there is no compiler. */
    private static final long LONGEST = 100_000_000;

    private static final Unsafe U = Unsafe.getUnsafe();

    /** Whether threads tell what the kernel counts of them. */
    private static boolean byKernel;

    private HeadwaterV1Counters() {}

    /** In this session nothing is counted, unless that is asked for. */
    static void attach() {
        byKernel = false;
        HeadwaterV1Allocation.counted = false;
    }

    /** Whether threads tell something at each event. */
    static boolean counted() {
        return byKernel || HeadwaterV1Allocation.counted;
    }

    /** Has the agent know what reading takes: the agent's thread reads. */
    static void calibrate() {
        long start = System.nanoTime();
        for (int i = 0; i < READINGS && System.nanoTime() - start < LONGEST; i++) {
            HeadwaterV1.kernelCounters(GO_ON);
            HeadwaterV1.kernelCounters(CALIBRATE);
        }
    }

    /** Threads tell from now on, those that are in the call graph from their next event. The lock is held. */
    static void beginByKernel() {
        byKernel = true;
        begin();
    }

    /** They no longer do. The lock is held. */
    static void endByKernel() {
        byKernel = false;
        end();
    }

    static void begin() {
        HeadwaterV1Threads.restamp(HeadwaterV1Clock.source, HeadwaterV1Clock.COUNTED);
    }

    static void end() {
        if (!counted()) {
            HeadwaterV1Threads.restamp(HeadwaterV1Clock.COUNTED, HeadwaterV1Clock.source);
        }
    }

    /**
     * Tells what has been counted since the thread's event before this one, unless it was outside the call graph then.
     *
     * @param prefix the event's
     * @return the event's word
     */
    static long count(HeadwaterV1Thread thread, long prefix) {
        if (thread.depth > 0) {
            tell(thread);
        }
        return HeadwaterV1Clock.stampCounted(thread, prefix);
    }

    /** Tells what has been counted since the thread told last. */
    static void tell(HeadwaterV1Thread thread) {
        // First, and last below: so the kernel counts nothing of what lies between.
        long moved = byKernel ? HeadwaterV1.kernelCounters(MOVED) : 0;
        if (HeadwaterV1Allocation.counted) {
            HeadwaterV1Allocation.tell(thread);
        }
        if (moved != 0) {
            for (int i = 0; i < BY_KERNEL; i++) {
                long by = U.getLong(moved + 8L * i);
                if (by > 0) {
                    HeadwaterV1Chunks.note(thread, COUNTER_INSTRUCTIONS + i, by > MAX_PAYLOAD ? MAX_PAYLOAD : by);
                }
            }
        }
    }

    /** What has been counted up to here has been told, or is not the thread's own. */
    static void goOn(HeadwaterV1Thread thread) {
        if (HeadwaterV1Allocation.counted) {
            HeadwaterV1Allocation.goOn(thread);
        }
        if (byKernel) {
            HeadwaterV1.kernelCounters(GO_ON);
        }
    }

    /** What is counted from here on is the profiler's, up to {@link #skip}. */
    static void mark(HeadwaterV1Thread thread) {
        if (thread.source == HeadwaterV1Clock.COUNTED) {
            if (byKernel) {
                HeadwaterV1.kernelCounters(MARK);
            }
            if (HeadwaterV1Allocation.counted) {
                HeadwaterV1Allocation.mark(thread);
            }
        }
    }

    static void skip(HeadwaterV1Thread thread) {
        HeadwaterV1Allocation.skip(thread);
        if (byKernel && thread.source == HeadwaterV1Clock.COUNTED) {
            HeadwaterV1.kernelCounters(SKIP);
        }
    }
}
