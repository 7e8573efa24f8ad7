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

    private HeadwaterV1Waits() {}

    static void begin(int kind) {
        write(WAIT_BEGINS + kind);
    }

    static void end(int kind) {
        write(WAIT_ENDS + kind);
    }

    /** Both ends are told with their time: what the thread calls meanwhile, or is held up for, is the tool's to tell apart. */
    private static void write(int id) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.depth > 0) {
            HeadwaterV1.write(thread, KIND_PAUSE, id);
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
            long duration = System.nanoTime() - thread.since;
            thread.since = 0;
            HeadwaterV1Chunks.note(thread, time, duration < 0 ? 0 : duration > MAX_PAYLOAD ? MAX_PAYLOAD : duration);
            HeadwaterV1Chunks.note(thread, times, 1);
        }
    }
}
