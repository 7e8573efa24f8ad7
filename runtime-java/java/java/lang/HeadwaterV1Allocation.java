package java.lang;

import static java.lang.HeadwaterV1.MAX_PAYLOAD;

import jdk.internal.misc.Unsafe;

/**
 * How much memory threads have allocated. The JVM keeps that for each, beside the thread: the bytes of its former allocation buffers, and
 * where in the present one it is. A thread reads only what is its own, or its carrier's, which lives as long as it reads.
 *
 * <p>Where these are is found by the agent, which has compared what is there with what the JVM says.
 */
final class HeadwaterV1Allocation {
    /** As the crate headwater-protocol has it; a test compares them. */
    private static final int COUNTER_ALLOCATED = 39;

    private static final Unsafe U = Unsafe.getUnsafe();
    /** Where a platform thread has the JVM's own thread; in a JDK that has no such field nothing is counted. */
    private static final long VM_THREAD = HeadwaterV1Threads.field(Thread.class, "eetop");

    /** Whether threads tell what they allocate. */
    static boolean counted;
    /** How often counting has begun: what threads had allocated before is of no use. */
    private static int beginnings;
    // Offsets in the JVM's thread: bytes that were allocated but for the present buffer; the buffer's begin, and what is free of it.
    private static long former;
    private static long start;
    private static long top;

    private HeadwaterV1Allocation() {}

    /** Threads tell from now on, those that are in the call graph from their next event. The lock is held. */
    static void begin(long formerOffset, long startOffset, long topOffset) {
        former = formerOffset;
        start = startOffset;
        top = topOffset;
        beginnings++;
        // Threads that see that it is counted see where, and since when.
        U.storeFence();
        counted = true;
        HeadwaterV1Counters.begin();
    }

    /** They no longer do. The lock is held. */
    static void end() {
        counted = false;
        HeadwaterV1Counters.end();
    }

    /** Tells what the thread has allocated since it told last. */
    static void tell(HeadwaterV1Thread thread) {
        int beginning = beginnings;
        long now = read(thread);
        long since = now - thread.allocated;
        if (since > 0 && thread.countedIn == beginning) {
            HeadwaterV1Chunks.note(thread, COUNTER_ALLOCATED, since > MAX_PAYLOAD ? MAX_PAYLOAD : since);
        }
        thread.countedIn = beginning;
        thread.allocated = now;
    }

    /** What the thread has allocated up to here has been told, or is not its own. */
    static void goOn(HeadwaterV1Thread thread) {
        thread.countedIn = beginnings;
        thread.allocated = read(thread);
        // Of what another carrier has allocated nothing follows.
        thread.mark = 0;
    }

    /** What the thread allocates from here on is the profiler's, up to {@link #skip}. */
    static void mark(HeadwaterV1Thread thread) {
        thread.mark = read(thread);
    }

    static void skip(HeadwaterV1Thread thread) {
        if (thread.mark != 0) {
            thread.allocated += read(thread) - thread.mark;
            thread.mark = 0;
        }
    }

    /** Bytes that the current thread has allocated, or, of a virtual one, its carrier. */
    private static long read(HeadwaterV1Thread thread) {
        Thread self = Thread.currentThread();
        if (thread.virtual) {
            self = HeadwaterV1Threads.carrierOf(self);
        }
        long vm = self == null || VM_THREAD < 0 ? 0 : U.getLong(self, VM_THREAD);
        if (vm == 0) {
            return thread.allocated;
        }
        for (;;) {
            long before = U.getLong(vm + former);
            long used = U.getLong(vm + top) - U.getLong(vm + start);
            // A collection may have taken the buffer away meanwhile, in an interpreter: what was used of it has been added then.
            if (U.getLong(vm + former) == before) {
                return used > 0 ? before + used : before;
            }
        }
    }
}
