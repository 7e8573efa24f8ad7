package java.lang;

import static java.lang.HeadwaterV1.FLAG_ENTERED;
import static java.lang.HeadwaterV1.FLAG_ROOT;
import static java.lang.HeadwaterV1.LOCK;

import jdk.internal.misc.Unsafe;

/** What the agent calls: a session's life, what it tells of threads, and what the JVM has told it of the current one. */
final class HeadwaterV1Session {
    private static final int OFFSET_CONTROL = 20;
    private static final int FLAGS = 4096;

    private static final Unsafe U = Unsafe.getUnsafe();
    /** The classes that a session's beginning does not initialise by itself. */
    private static final Class<?>[] USED_BY_PROBES = {
        HeadwaterV1Handles.class, HeadwaterV1Handover.class, HeadwaterV1Task.class, HeadwaterV1Bucket.class, HeadwaterV1Entry.class,
        HeadwaterV1Receivers.class, HeadwaterV1Outermost.class, HeadwaterV1Open.class, HeadwaterV1Leaving.class, HeadwaterV1Waits.class,
        HeadwaterV1Exceptions.class, HeadwaterV1Sites.class, HeadwaterV1Counters.class
    };

    private HeadwaterV1Session() {}

    /** Begins a session over a freshly mapped segment. Nothing is recorded yet. */
    private static void attach(long segment, int chunks, int chunkBytes, long chunkData, long readTsc) {
        synchronized (LOCK) {
            HeadwaterV1.flags = segment + FLAGS;
            // Nothing is left to be initialised by a probe: it may be near the end of its stack, and a class whose initialisation
            // fails stays unusable.
            for (Class<?> used : USED_BY_PROBES) {
                U.ensureClassInitialized(used);
            }
            HeadwaterV1Chunks.attach(segment, chunks, chunkBytes, chunkData);
            HeadwaterV1Clock.attach(segment, readTsc);
            HeadwaterV1Counters.attach();
            HeadwaterV1Waits.attach();
            HeadwaterV1Exceptions.counted = false;
            HeadwaterV1Leaving.counted = false;
            HeadwaterV1Sites.end();
            letGo();
            HeadwaterV1Revealed.clear();
            HeadwaterV1Receivers.clear();
            HeadwaterV1HandedOver.clear();
        }
    }

    /** A thread is in calls of these methods that began before recording, the outermost first. */
    private static void open(long tid, int[] methods) {
        synchronized (LOCK) {
            if (!HeadwaterV1.recording) {
                return;
            }
            HeadwaterV1Thread thread = HeadwaterV1Threads.find(tid);
            if (thread == null) {
                thread = HeadwaterV1Thread.ofProgram(tid, false);
                HeadwaterV1Threads.insert(thread);
            }
            thread.openCount = methods.length;
            HeadwaterV1Open open = new HeadwaterV1Open(methods);
            // The count and the numbers are there for a thread that sees it.
            U.storeFence();
            thread.open = open;
            U.storeFence();
            thread.comesInByAny = true;
        }
    }

    /** A thread has returned from all such calls. */
    private static void returned(long tid) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.find(tid);
        if (thread != null) {
            thread.open = null;
        }
    }

    private static void record() {
        synchronized (LOCK) {
            if (HeadwaterV1.watching) {
                HeadwaterV1.watching = false;
                HeadwaterV1Threads.clear();
            }
            HeadwaterV1.controlEvery = U.getInt(HeadwaterV1Chunks.segment + OFFSET_CONTROL);
            HeadwaterV1.recording = true;
        }
    }

    /** @return the time at which recording ended */
    private static long stop() {
        synchronized (LOCK) {
            if (HeadwaterV1.recording) {
                HeadwaterV1.recording = false;
                HeadwaterV1.watching = true;
                HeadwaterV1Threads.close();
            }
            HeadwaterV1Revealed.clear();
            HeadwaterV1Receivers.clear();
            HeadwaterV1HandedOver.clear();
            return HeadwaterV1Clock.now();
        }
    }

    /**
     * Has threads that leave the call graph wait for what is being given back.
     *
     * @return how many threads are in it, but for virtual ones, which wait for nothing
     */
    private static long hold() {
        synchronized (LOCK) {
            HeadwaterV1.leaving = true;
            return HeadwaterV1Threads.inside();
        }
    }

    /** Nobody need wait any longer, and nobody is watched. */
    private static void letGo() {
        synchronized (LOCK) {
            HeadwaterV1.leaving = false;
            HeadwaterV1.watching = false;
            HeadwaterV1Threads.clear();
        }
    }

    /** @return how many threads have been in the call graph, but for some that have ended */
    private static long threads() {
        synchronized (LOCK) {
            return HeadwaterV1Threads.known();
        }
    }

    /** The current thread is about to end. */
    private static void threadEnd() {
        HeadwaterV1Threads.end();
    }

    /** The current thread begins to do something on the profiler's account, outside the runtime. */
    private static void pausing() {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.depth > 0) {
            HeadwaterV1Counters.mark(thread);
        }
    }

    /** It has done that. */
    private static void paused(int reason, long duration) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.depth > 0) {
            HeadwaterV1Counters.skip(thread);
            HeadwaterV1.pause(thread, reason, duration);
        }
    }

    /** From now on, what is allocated inside the call graph is counted; where the JVM keeps that. */
    private static void countAllocation(long former, long start, long top) {
        synchronized (LOCK) {
            HeadwaterV1Allocation.begin(former, start, top);
        }
    }

    /** It no longer is. */
    private static void countNoAllocation() {
        synchronized (LOCK) {
            HeadwaterV1Allocation.end();
        }
    }

    /** From now on, what the kernel counts inside the call graph is told; the agent reads it. */
    private static void countByKernel() {
        HeadwaterV1Counters.calibrate();
        synchronized (LOCK) {
            HeadwaterV1Counters.beginByKernel();
        }
    }

    /** It no longer is. */
    private static void countNoneByKernel() {
        synchronized (LOCK) {
            HeadwaterV1Counters.endByKernel();
        }
    }

    /** From now on these are told of, by probes that may be there: waits by a bit for each kind, exceptions, instructions. */
    private static void tell(int waits, boolean exceptions, boolean instructions) {
        HeadwaterV1Waits.tell(waits);
        HeadwaterV1Exceptions.counted = exceptions;
        HeadwaterV1Leaving.counted = instructions;
    }

    /**
     * From now on objects are counted where they are made.
     *
     * @return 0 if the JVM does not lay them out as expected
     */
    private static long countObjects() {
        synchronized (LOCK) {
            return HeadwaterV1Sites.begin();
        }
    }

    /** They no longer are. */
    private static void countNoObjects() {
        synchronized (LOCK) {
            HeadwaterV1Sites.end();
        }
    }

    /** The current thread, which is virtual, is about to leave its carrier: what is counted of that from here on is not its own. */
    private static void unmounts() {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.depth > 0 && thread.source == HeadwaterV1Clock.COUNTED) {
            HeadwaterV1Counters.tell(thread);
        }
    }

    /** It goes on, on the same carrier or another. */
    private static void mounted() {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.source == HeadwaterV1Clock.COUNTED) {
            HeadwaterV1Counters.goOn(thread);
        }
    }

    /** Something happened in the method that the current thread is in. */
    private static void counted(int counter, long value) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.depth > 0) {
            HeadwaterV1Chunks.note(thread, counter, value);
        }
    }

    /** The current thread begins to wait for a monitor. */
    private static void waits() {
        HeadwaterV1Waits.beginForMonitor();
    }

    /** It has waited. */
    private static void waited(int time, int times) {
        HeadwaterV1Waits.endForMonitor(time, times);
    }

    /** Makes method 0, which is calibration's, a root whose calls are all control invocations; or a method like others again. */
    static void controlAll(boolean all) {
        HeadwaterV1.controlEvery = all ? 1 : 0;
        U.putByte(HeadwaterV1.flags, all ? FLAG_ENTERED | FLAG_ROOT : FLAG_ENTERED);
    }

    private static double[] calibrate() {
        return HeadwaterV1Calibration.calibrate();
    }
}
