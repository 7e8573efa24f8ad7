package java.lang;

/** What the runtime knows of one thread that has entered the call graph. Written by that thread only, but for {@link #dead}. */
final class HeadwaterV1Thread {
    /** {@code Thread.threadId()}, never reused; the key in the runtime's table. */
    final long tid;
    /** The profiling session it belongs to: a late writer must not touch a later session's chunks. */
    final int session;
    /** Forgotten, and its chunk given back, whenever it leaves the call graph: there may be very many of these. */
    final boolean virtual;

    /** The root method by whose call the thread came into the call graph. */
    int root;
    /**
     * 0: outside the call graph. Positive: inside, with this many calls of {@link #root} on the stack. Negative: inside the
     * runtime's own slow path (JFluid's inProfilerRuntimeMethod) or in a control invocation: nothing is recorded.
     *
     * <p>Only the root's calls are counted: other methods' exits may be missing (a superclass constructor that throws
     * leaves none), and must not keep the thread inside.
     */
    int depth;
    /** In a control invocation: how many calls of {@link #root} are on the stack; {@link #depth} is negative then. */
    int controlDepth;
    /** Calls of roots since the last control invocation. */
    int uncontrolled;
    /** When the control invocation began. */
    long controlStart;
    /** Address of the next event word; equal to {@link #end} when there is no room. */
    long position;
    /** Address behind the chunk's last word. */
    long end;
    /** The nanoTime that the chunk's times are relative to. */
    long base;
    /** Address of the chunk's head; 0 when there is no chunk or only the sink. */
    long head;
    /** The thread has ended, or is virtual and outside the graph: may be dropped from the table. */
    volatile boolean dead;

    HeadwaterV1Thread(long tid, int session, boolean virtual) {
        this.tid = tid;
        this.session = session;
        this.virtual = virtual;
    }
}
