package java.lang;

/**
 * Where a thread is: what its probes read and write at each event. Apart from the rest of a thread's state, which follows in
 * {@link HeadwaterV1Thread}, so that what is written here lies in front of all of it.
 */
abstract class HeadwaterV1Cursor {
    /** Address of the next event word; equal to {@link #end} when there is no room. */
    long position;
    /**
     * 0: outside the call graph. Positive: inside, with this many calls of {@link #root} on the stack. Negative: inside the
     * runtime's own slow path (JFluid's inProfilerRuntimeMethod) or in a control invocation: nothing is recorded.
     *
     * <p>Only the root's calls are counted: other methods' exits may be missing (a superclass constructor that throws
     * leaves none), and must not keep the thread inside.
     */
    int depth;
    /** The root method by whose call the thread came into the call graph. */
    int root;
    /** Address behind the chunk's last word. */
    long end;
    /** What the clock said at the chunk's base: nanoseconds, or ticks of the time stamp counter. */
    long base;
    /** Nanoseconds a tick, with {@link HeadwaterV1Clock#SCALE_SHIFT} fractional bits; the same throughout a chunk. */
    long scale;
    /** What its events' times are read from, as {@link HeadwaterV1Clock} numbers them; {@link HeadwaterV1Clock#LATE} in the end. */
    int source;
    /**
     * It may come in by any method, because of {@link HeadwaterV1Thread#handed} or {@link HeadwaterV1Thread#open}; or that was so, and
     * it has not called any since.
     */
    boolean comesInByAny;
    /** Bytes that had been allocated at its latest event, where that is counted. */
    long allocated;
    /** The thread, while {@link HeadwaterV1Threads#current} may find its state by it; {@code null} if only by its number. */
    Thread owner;
}
