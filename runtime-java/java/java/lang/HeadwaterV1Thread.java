package java.lang;

import jdk.internal.misc.Unsafe;

/**
 * What the runtime knows of one thread that has entered the call graph. Written by that thread only, but for {@link #dead},
 * {@link #open} with {@link #comesInByAny}, and {@link #source} when recording ends.
 *
 * <p>Other threads, in whose place of the table this one is, read {@link #tid} and {@link #displaced}. These are at least a cache line
 * away from what is written in an event, this thread's and that of the object behind it. A JVM lays out a class's fields by size, those
 * of one size as they are declared; {@code tests/tests/footprint.rs} looks where they are.
 */
final class HeadwaterV1Thread extends HeadwaterV1Cursor {
    /** When the control invocation began, or, inside the call graph, when the thread began to wait for a monitor; 0 if it did not. */
    long since;
    /** Bytes that had been allocated when the thread began to do something for the profiler; 0 while it does not. */
    long mark;
    /** Address of the chunk's head; 0 when there is no chunk or only the sink. */
    long head;
    /** {@code Thread.threadId()}, never reused; the key in the runtime's table. */
    final long tid;
    /** How many threads were put behind this one, because it was in their place of the table; also of tables before this one. */
    long displaced;
    /** Time of the latest event in the chunk before, in ns: the next chunk's times must not precede it. */
    long latest;
    /** The number under which it was started inside the call graph; 0 if it was not, or once it has recorded that. */
    long startedBy;
    /** In a control invocation: how many calls of {@link #root} are on the stack; {@link #depth} is negative then. */
    int controlDepth;
    /** Calls of roots since the last control invocation. */
    int uncontrolled;
    /** Of a virtual thread: how often it began to write into a chunk in which another one, or it long ago, wrote last. */
    int run;
    /** How many of {@link #open} have not been recorded to have returned. */
    int openCount;
    // These four are padding, too: see above. None is written in an event.
    /** Waits that have begun, of those that the tool has been told of; each of them is told to have ended. */
    int waitsTold;
    /** The same of calls of class loaders. */
    int loadsTold;
    /** Since which beginning of counting {@link #allocated} holds: see {@link HeadwaterV1Allocation}. */
    int countedIn;
    /** Of a carrier: not 0 once the tool knows what the operating system calls it. */
    int told;
    /** Writes into its carriers' chunks, and is forgotten whenever it leaves the call graph: there may be very many of these. */
    final boolean virtual;
    /** The thread has ended, or is virtual and outside the graph: may be dropped from the table. */
    volatile boolean dead;
    /** What it runs was handed over inside the call graph: that counts as called there. */
    boolean handed;
    /** Writes into chunks that are hidden from the tool, and claims none. */
    boolean calibrates;
    /** Of a carrier: the virtual thread that wrote last. */
    HeadwaterV1Thread writer;
    /** Of a virtual thread: the carrier whose chunk it wrote into last. */
    HeadwaterV1Thread carrier;
    /** Calls that were open when recording began; {@code null} when there are none, or none any more. Set by the agent's thread, cleared by either. */
    HeadwaterV1Open open;
    /** What it runs now that was handed to it; {@code null} for the thread's own work. */
    HeadwaterV1Task task;
    /** The latest exceptions, as {@link HeadwaterV1Exceptions} has them; {@code null} before the first. */
    long[] exceptions;

    HeadwaterV1Thread(long tid, boolean virtual) {
        this.tid = tid;
        source = HeadwaterV1Clock.source;
        this.virtual = virtual;
    }

    /** That of one of the program's threads: it tells all that is asked for. */
    static HeadwaterV1Thread ofProgram(long tid, boolean virtual) {
        HeadwaterV1Thread thread = new HeadwaterV1Thread(tid, virtual);
        if (HeadwaterV1Counters.counted()) {
            thread.source = HeadwaterV1Clock.COUNTED;
        }
        return thread;
    }

    void setHanded(boolean handed) {
        this.handed = handed;
        if (handed) {
            comesInByAny = true;
        }
    }

    /** The thread, outside the call graph, has called a method that is no root, and did not come in by it. */
    void comesInByRootsOnly() {
        if (!handed && open == null) {
            comesInByAny = false;
            // The agent's thread may be writing both.
            Unsafe.getUnsafe().fullFence();
            if (open != null) {
                comesInByAny = true;
            }
        }
    }
}
