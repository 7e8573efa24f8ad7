package java.lang;

import static java.lang.HeadwaterV1.KIND_PAUSE;
import static java.lang.HeadwaterV1.MAX_PAYLOAD;

/**
 * What threads in the call graph wait in: for monitors, which the agent tells of, and in the JDK's methods that park, sleep, read and write,
 * which have probes.
 */
final class HeadwaterV1Waits {
    // As the crate headwater-protocol has them; a test compares.
    private static final int WAIT_BEGINS = 64;
    private static final int WAIT_ENDS = 80;
    /** Number of what is no wait, but class loading. */
    private static final int WAIT_LOADING = 4;
    /** And of what the agent tells of, which has no probe. */
    private static final int WAIT_MONITOR = 5;

    /** A bit for each kind that is told of, at the place of its number. */
    private static int told;
    /** Since when monitors are, by {@code System.nanoTime()}. */
    private static long monitorsSince;

    private HeadwaterV1Waits() {}

    /** In this session nothing is told, unless that is asked for. */
    static void attach() {
        told = 0;
    }

    /** From now on these kinds are told of. What has begun by now is told to its end, if it was told, and not at all if it was not. */
    static void tell(int kinds) {
        if ((kinds & ~told) >>> WAIT_MONITOR != 0) {
            monitorsSince = System.nanoTime();
        }
        told = kinds;
    }

    static void begin(int kind) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread == null || thread.depth <= 0) {
            return;
        }
        boolean isWithin = kind == WAIT_LOADING ? thread.loadsTold > 0 : thread.waitsTold > 0;
        if (isWithin || (told >>> kind & 1) != 0) {
            // Both ends are told with their time: what the thread calls meanwhile, or is held up for, is the tool's to tell apart.
            HeadwaterV1.write(thread, KIND_PAUSE, WAIT_BEGINS + kind);
            if (kind == WAIT_LOADING) {
                thread.loadsTold++;
            } else {
                thread.waitsTold++;
            }
        }
    }

    static void end(int kind) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread == null || thread.depth <= 0) {
            return;
        }
        if (kind == WAIT_LOADING ? thread.loadsTold > 0 : thread.waitsTold > 0) {
            if (kind == WAIT_LOADING) {
                thread.loadsTold--;
            } else {
                thread.waitsTold--;
            }
            HeadwaterV1.write(thread, KIND_PAUSE, WAIT_ENDS + kind);
        }
    }

    /** The thread leaves the call graph. A probe near the end of its stack may have told of the one end and not of the other. */
    static void outside(HeadwaterV1Thread thread) {
        if ((thread.waitsTold | thread.loadsTold) != 0) {
            thread.waitsTold = 0;
            thread.loadsTold = 0;
        }
    }

    /** The current thread begins to wait for a monitor. */
    static void beginForMonitor() {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.depth > 0) {
            thread.since = System.nanoTime();
        }
    }

    /** It has waited. */
    static void endForMonitor(int time, int times) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.depth > 0 && thread.since != 0) {
            long began = thread.since;
            thread.since = 0;
            if (began - monitorsSince < 0) {
                // Not this one: nobody was told that it began, nor that the one before had ended.
                return;
            }
            long duration = System.nanoTime() - began;
            HeadwaterV1Chunks.note(thread, time, duration < 0 ? 0 : duration > MAX_PAYLOAD ? MAX_PAYLOAD : duration);
            HeadwaterV1Chunks.note(thread, times, 1);
        }
    }
}
