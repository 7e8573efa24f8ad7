package java.lang;

/** What the runtime knows of one thread that has entered the call graph. Written by that thread only, but for {@link #dead},
 * {@link #open}, and {@link #source} when recording ends. */
final class HeadwaterV1Thread extends HeadwaterV1Cursor {
    /** Writes into its carriers' chunks, and is forgotten whenever it leaves the call graph: there may be very many of these. */
    final boolean virtual;

    /** In a control invocation: how many calls of {@link #root} are on the stack; {@link #depth} is negative then. */
    int controlDepth;
    /** Calls of roots since the last control invocation. */
    int uncontrolled;
    /** When the control invocation began. */
    long controlStart;
    /** Address of the chunk's head; 0 when there is no chunk or only the sink. */
    long head;
    /** Time of the latest event in the chunk before, in ns: the next chunk's times must not precede it. */
    long latest;
    /** Of a carrier: the virtual thread that wrote last. */
    HeadwaterV1Thread writer;
    /** Of a virtual thread: the carrier whose chunk it wrote into last. */
    HeadwaterV1Thread carrier;
    /** Of a virtual thread: how often it began to write into a chunk in which another one, or it long ago, wrote last. */
    int run;
    /** The thread has ended, or is virtual and outside the graph: may be dropped from the table. */
    volatile boolean dead;
    /** Was in another thread's place in the table, so that one is behind it; for good, though the table is made anew. */
    boolean displaces;
    /**
     * Calls of these methods were open when recording began, the outermost first; {@code null} when there are none, or none any more.
     * Set by the agent's thread.
     */
    int[] open;
    /** How many of {@link #open} have not been recorded to have returned. */
    int openCount;
    /** What it runs was handed over inside the call graph: that counts as called there. */
    boolean handed;
    /** What it runs now that was handed to it; {@code null} for the thread's own work. */
    HeadwaterV1Task task;
    /** The number under which it was started inside the call graph; 0 if it was not, or once it has recorded that. */
    long startedBy;
    /** Writes into chunks that are hidden from the tool, and claims none. */
    boolean calibrates;
    /** Padding: together with the fields above at least a cache line between this cursor and the object behind. */
    long padding0;
    long padding1;
    long padding2;

    HeadwaterV1Thread(long tid, boolean virtual) {
        super(tid);
        source = HeadwaterV1Clock.source;
        this.virtual = virtual;
    }
}
