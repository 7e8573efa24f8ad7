package java.lang;

import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.ReservedStackAccess;

/**
 * What instrumented methods call. Lives in java.base, because every class can call it there; its name carries the version,
 * because a class so defined stays until the JVM ends.
 *
 * <p>The fast path allocates nothing, locks nothing and calls only intrinsics and what reads the clock
 * ({@link HeadwaterV1Tsc}), none of which can be instrumented. The slow paths (a method's first call, a full chunk, a thread's
 * first entry) run with {@link HeadwaterV1Thread#depth} negated, so that instrumented code they happen to run records nothing.
 *
 * <p>Only the last call in a probe stores the event, and plain field writes follow it: a StackOverflowError inside a probe
 * leaves both the word and the depth changed, or neither.
 */
public final class HeadwaterV1 {
    // The event word and the segment's layout, as in the crate headwater-protocol; a test compares them.
    private static final int ID_SHIFT = 41;
    private static final int KIND_SHIFT = 61;
    private static final long MAX_PAYLOAD = (1L << 41) - 1;
    private static final int THREAD_BITS = 36;
    private static final long MAX_THREAD = (1L << 36) - 1;
    private static final int MAX_RUN = (1 << 25) - 1;
    private static final long KIND_ENTER = 1;
    private static final long KIND_EXIT = 2;
    private static final long KIND_THROW = 3;
    private static final long KIND_ROOT = 4;
    private static final long KIND_PAUSE = 5;
    private static final long KIND_CONTROL = 6;
    private static final long KIND_THREAD = 7;
    private static final int PAUSE_HOTSWAP = 0;
    private static final int PAUSE_BUFFER = 1;
    private static final int PAUSE_OPEN_CALLS = 3;
    private static final int OFFSET_CLAIMS = 64;
    private static final int OFFSET_LOST = 128;
    private static final int OFFSET_CLOCK_PERIOD = 16;
    private static final int OFFSET_CONTROL = 20;
    private static final int OFFSET_OVERFLOW = 28;
    private static final int OFFSET_CLOCK = 192;
    private static final int OFFSET_CLOCK_SOURCE = 24;
    private static final int SOURCE_NANO_TIME = 0;
    private static final int SOURCE_TSC = 1;
    private static final int SOURCE_THREAD_CPU = 2;
    private static final int FLAGS = 4096;
    private static final byte FLAG_ENTERED = 1;
    private static final byte FLAG_ROOT = 2;
    private static final int CHUNK_HEADS = 4096 + (1 << 20);
    private static final int CHUNK_HEAD_BYTES = 64;
    private static final int HEAD_STATE = 0;
    private static final int HEAD_CLAIM = 8;
    private static final int HEAD_THREAD = 16;
    private static final int HEAD_BASE_NS = 24;
    private static final int STATE_FREE = 0;
    private static final int STATE_CLAIMED = 1;
    private static final int STATE_OWNED = 2;
    private static final int STATE_FULL = 3;
    private static final int NO_METHOD = -1;
    // Bits of what a reflected method's kind is.
    static final int OF_CONSTRUCTOR = 1;
    static final int OF_HANDLE = 2;
    static final int OF_JDK_TOO = 4;
    /** Nanoseconds. */
    private static final long LONGEST_WAIT = 3_000_000_000L;
    private static final int CHUNK_BYTES = 32 * 1024;
    /** Half a megabyte. */
    private static final int WARM_CHUNKS = 16;
    /** Value of {@link #clock}. */
    private static final long NANO_TIME = 0;
    /** Value of {@link #clock}. */
    private static final long TSC = -1;
    /** Value of {@link #clock}. */
    private static final long THREAD_CPU = -2;
    /** Fractional bits of {@link HeadwaterV1Cursor#scale}. */
    static final int SCALE_SHIFT = 27;
    /** Ticks of a chunk at most, in bits: times the scale of a counter of 1 GHz or more they fit into 63 bits. */
    private static final int TICK_BITS = 35;
    /** Scale of a counter of 1 GHz: see {@link #TICK_BITS}. */
    private static final long FASTEST_SCALE = 1L << SCALE_SHIFT;
    /** Scale of a counter of 32 GHz: there is none so fast. */
    private static final long SLOWEST_SCALE = 1L << SCALE_SHIFT - 5;
    /** After so many nanoseconds the counter's frequency is known well enough to begin with. */
    private static final long FIRST_SPAN = 10_000_000;
    /** Nanoseconds after which that is given up. */
    private static final long LONGEST_START = 1_000_000_000;
    /** Readings after which a method handle is customised, and more. */
    private static final int WARM_READS = 1000;

    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long TID = U.objectFieldOffset(Thread.class, "tid");
    private static final long NAME = U.objectFieldOffset(Thread.class, "name");
    private static final Class<?> VIRTUAL_THREAD = virtualThreadClass();
    /** Where a virtual thread has its carrier. */
    private static final long CARRIER =
            VIRTUAL_THREAD == null ? 0 : U.objectFieldOffset(VIRTUAL_THREAD, "carrierThread");
    private static final HeadwaterV1Thread[] NO_THREADS = new HeadwaterV1Thread[1];
    private static final long METHOD_SLOT = U.objectFieldOffset(Method.class, "slot");
    private static final long CONSTRUCTOR_SLOT = U.objectFieldOffset(Constructor.class, "slot");
    /** Guards registration, start and stop. Nothing waits while holding it. */
    private static final Object LOCK = new Object();
    /** Where words go when no chunk is to be had: overwritten again and again, and counted. */
    private static final long SINK = U.allocateMemory(CHUNK_BYTES);

    /** Open-addressing table by thread id, a power of two long, at most half full. */
    private static HeadwaterV1Thread[] threads = NO_THREADS;
    private static int threadCount;
    /** The latest run of any virtual thread that was dropped from the table: it goes on counting from there. */
    private static int forgottenRun;
    /** Address of the method flags. The memory stays mapped for good once there has been a session. */
    private static long flags;
    private static long segment;
    /** Of so many calls of a root by a thread, one is a control invocation: timed, and not recorded. 0 for none, 1 for all. */
    private static int controlEvery;
    /** Address of the coarse clock that the tool keeps; or {@link #NANO_TIME}, {@link #TSC} or {@link #THREAD_CPU}. */
    private static long clock;
    /** A thread for whose events there is no room waits, instead of losing them. */
    private static boolean waiting;
    /** Address of a function of the agent's that returns the time stamp counter. */
    static long tscFunction;
    /** Nanoseconds a tick of the counter, as far as is known, with {@link #SCALE_SHIFT} fractional bits. */
    private static long scale;
    /** The counter and {@code System.nanoTime()} at one moment in the session's beginning. */
    private static long firstTicks;
    private static long firstTime;
    /** The fewest ticks that were seen to pass around a reading of the clock. */
    private static long narrowest;
    private static long heads;
    private static long data;
    private static int chunks;
    /** Index of a chunk. */
    private static int lastClaimed;
    private static int session;
    /**
     * What was called by reflection in this session: an open-addressing table of owners, at most half full. Its first element has
     * the numbers of their methods (twice the slot; one more for constructors). Methods behind handles are their own owners.
     */
    private static Object[] revealed = revealedTable(64);
    private static int revealedCount;
    private static boolean recording;
    /** Keeps the calibration's loops from being optimised away. */
    private static int calibrationWork;

    private HeadwaterV1() {}

    /** First instruction of every instrumented method. */
    public static void enter(int id) {
        HeadwaterV1Thread thread = current();
        if (thread == null || thread.depth <= 0) {
            if ((U.getByte(flags + id) & FLAG_ROOT) != 0) {
                enterRoot(thread, id);
            } else if (thread != null && thread.open != null) {
                enterFromOpen(thread, id);
            }
            return;
        }
        if ((U.getByte(flags + id) & FLAG_ENTERED) == 0) {
            firstCall(thread, id);
        }
        long time = time(thread);
        if (thread.position >= thread.end || (time & ~MAX_PAYLOAD) != 0) {
            time = nextChunk(thread, time);
        }
        long position = thread.position;
        U.putLong(position, KIND_ENTER << KIND_SHIFT | (long) id << ID_SHIFT | time);
        thread.position = position + 8;
        if (id == thread.root) {
            thread.depth++;
        }
    }

    /**
     * A method is about to be called by reflection or by a method handle: what it may run is instrumented before.
     *
     * @param executable the method or constructor, or the direct handle of one
     * @param kind a sum of {@link #OF_CONSTRUCTOR}, {@link #OF_HANDLE} and {@link #OF_JDK_TOO}
     */
    public static void reflected(Object executable, int kind) {
        boolean isHandle = (kind & OF_HANDLE) != 0;
        Object handled = isHandle ? HeadwaterV1Handles.method(executable, kind) : null;
        if (isHandle && handled == null) {
            return;
        }
        HeadwaterV1Thread thread = current();
        if (thread == null) {
            return;
        }
        int depth = thread.depth;
        if (depth > 0 || depth == 0 && thread.open != null) {
            long start = 0;
            thread.depth = depth > 0 ? -depth : -1;
            try {
                Object owner = isHandle ? handled : ((Executable) executable).getDeclaringClass();
                int slot = isHandle ? 0 : U.getInt(executable, kind == 0 ? METHOD_SLOT : CONSTRUCTOR_SLOT) * 2 + kind;
                if (!isRevealed(owner, slot)) {
                    start = stopwatch();
                    if (isHandle) {
                        HeadwaterV1Handles.reveal(executable, kind);
                    } else {
                        reveal(executable);
                    }
                    setRevealed(owner, slot);
                }
            } catch (OutOfMemoryError e) {
                // The program's to meet, not ours to throw: it is revealed again the next time.
            } finally {
                thread.depth = depth;
            }
            if (start != 0 && depth > 0) {
                pause(thread, PAUSE_HOTSWAP, stopwatch() - start);
            }
        }
    }

    private static boolean isRevealed(Object owner, int slot) {
        Object[] owners = revealed;
        int[] slots = (int[]) owners[0];
        int mask = slots.length - 1;
        for (int at = System.identityHashCode(owner) * 31 + slot & mask;; at = at + 1 & mask) {
            Object known = owners[at + 1];
            if (known == null || known == owner && slots[at] == slot) {
                return known != null;
            }
        }
    }

    private static void setRevealed(Object owner, int slot) {
        synchronized (LOCK) {
            if (!recording || isRevealed(owner, slot)) {
                return;
            }
            int[] slots = (int[]) revealed[0];
            if ((revealedCount + 1) * 2 > slots.length) {
                Object[] owners = revealed;
                Object[] larger = revealedTable(slots.length * 2);
                for (int i = 0; i < slots.length; i++) {
                    if (owners[i + 1] != null) {
                        putRevealed(larger, owners[i + 1], slots[i]);
                    }
                }
                // The entries are there for whoever sees the new table.
                U.storeFence();
                revealed = larger;
            }
            putRevealed(revealed, owner, slot);
            revealedCount++;
        }
    }

    private static void putRevealed(Object[] owners, Object owner, int slot) {
        int[] slots = (int[]) owners[0];
        int mask = slots.length - 1;
        int at = System.identityHashCode(owner) * 31 + slot & mask;
        while (owners[at + 1] != null) {
            at = at + 1 & mask;
        }
        slots[at] = slot;
        // Whoever sees the owner sees the slot.
        U.storeFence();
        owners[at + 1] = owner;
    }

    private static Object[] revealedTable(int length) {
        Object[] owners = new Object[length + 1];
        owners[0] = new int[length];
        return owners;
    }

    /** Before every return of an instrumented method. */
    @ReservedStackAccess
    public static void exit(int id) {
        HeadwaterV1Thread thread = current();
        if (thread != null) {
            leave(thread, id, KIND_EXIT);
        }
    }

    /** When an exception leaves an instrumented method. */
    @ReservedStackAccess
    public static void thrown(int id) {
        HeadwaterV1Thread thread = current();
        if (thread != null) {
            leave(thread, id, KIND_THROW);
        }
    }

    private static void leave(HeadwaterV1Thread thread, int id, long kind) {
        if (thread.depth <= 0) {
            if (thread.controlDepth > 0 && id == thread.root) {
                leaveControl(thread, id);
            }
            return;
        }
        long time = time(thread);
        if (thread.position >= thread.end || (time & ~MAX_PAYLOAD) != 0) {
            time = nextChunk(thread, time);
        }
        long position = thread.position;
        U.putLong(position, kind << KIND_SHIFT | (long) id << ID_SHIFT | time);
        thread.position = position + 8;
        if (id == thread.root && --thread.depth == 0) {
            outside(thread);
        }
    }

    /** A thread keeps its chunk for the next time, unless there are too many threads for that. */
    private static void outside(HeadwaterV1Thread thread) {
        if (thread.virtual) {
            thread.dead = true;
        } else if (threadCount * 2 > chunks) {
            release(thread);
        }
    }

    private static void leaveControl(HeadwaterV1Thread thread, int id) {
        if (--thread.controlDepth != 0) {
            return;
        }
        long duration = stopwatch() - thread.controlStart;
        thread.depth = 0;
        if (thread.position >= thread.end) {
            nextChunk(thread, 0);
        }
        long payload = duration > MAX_PAYLOAD ? MAX_PAYLOAD : duration;
        append(thread, KIND_CONTROL << KIND_SHIFT | (long) id << ID_SHIFT | payload);
        outside(thread);
    }

    /** Nanoseconds since the chunk's base. Negative, or more than fit into a word, when the chunk is too old. */
    private static long time(HeadwaterV1Thread thread) {
        long source = clock;
        if (source > NANO_TIME) {
            return U.getLongOpaque(null, source) - thread.base;
        }
        if (source == NANO_TIME) {
            return System.nanoTime() - thread.base;
        }
        if (source == THREAD_CPU) {
            return cpuTime() - thread.base;
        }
        long ticks = HeadwaterV1Tsc.read() - thread.base;
        return ticks >>> TICK_BITS == 0 ? ticks * thread.scale >>> SCALE_SHIFT : -1;
    }

    /**
     * Lets the thread's times begin now.
     *
     * @return now: {@code System.nanoTime()}, what the coarse clock says, or the thread's CPU time
     */
    private static long rebase(HeadwaterV1Thread thread) {
        if (clock == TSC) {
            return readTogether(thread);
        }
        return thread.base = clock == THREAD_CPU ? cpuTime() : now();
    }

    /**
     * Reads the counter, into the thread's base, and {@code System.nanoTime()} at one moment. Each chunk is tied to the latter so,
     * and each reading tells more about the counter's frequency: nothing drifts, however long the session.
     *
     * @return {@code System.nanoTime()}
     */
    private static long readTogether(HeadwaterV1Thread thread) {
        long time = 0;
        long around = Long.MAX_VALUE;
        int readings = 0;
        do {
            long before = HeadwaterV1Tsc.read();
            long between = System.nanoTime();
            long after = HeadwaterV1Tsc.read();
            if (after - before < around) {
                around = after - before;
                thread.base = before + (around >> 1);
                time = between;
            }
            readings++;
            // When the thread was interrupted between them, they are far apart.
        } while (readings < 4 && around / 2 > narrowest);
        if (around < narrowest) {
            narrowest = around;
        }
        if (around / 2 <= narrowest && time - firstTime > FIRST_SPAN) {
            long known = scale;
            long found = (long) ((double) (time - firstTime) / (thread.base - firstTicks) * (1 << SCALE_SHIFT) + 0.5);
            // A machine that slept may have set its counter back, or its clock may have stood still meanwhile.
            if (known == 0 || Math.abs(found - known) <= known >> 10) {
                scale = found;
            }
        }
        thread.scale = scale;
        return time;
    }

    /** {@code System.nanoTime()}, or what the coarse clock says. */
    private static long now() {
        long source = clock;
        return source > NANO_TIME ? U.getLongOpaque(null, source) : System.nanoTime();
    }

    /** What a duration is measured by: as the event's times, where those are the thread's own; else {@code System.nanoTime()}. */
    private static long stopwatch() {
        return clock == THREAD_CPU ? cpuTime() : System.nanoTime();
    }

    private static HeadwaterV1Thread current() {
        return find(U.getLong(Thread.currentThread(), TID));
    }

    private static HeadwaterV1Thread find(long tid) {
        HeadwaterV1Thread[] table = threads;
        int mask = table.length - 1;
        int at = (int) tid & mask;
        for (;;) {
            HeadwaterV1Thread thread = table[at];
            if (thread == null || thread.tid == tid) {
                return thread;
            }
            at = (at + 1) & mask;
        }
    }

    /** A root is entered by a thread outside the call graph (or inside the runtime, which does not count). */
    private static void enterRoot(HeadwaterV1Thread thread, int id) {
        if (thread != null && thread.open != null && enterFromOpen(thread, id)) {
            return;
        }
        if (thread == null || thread.dead) {
            thread = register();
            if (thread == null) {
                return;
            }
        } else if (thread.depth < 0) {
            if (thread.controlDepth > 0 && id == thread.root) {
                thread.controlDepth++;
            }
            return;
        }
        int every = controlEvery;
        // A method's first call is recorded, because it is what reveals its callees.
        if (every != 0 && (every == 1 || (U.getByte(flags + id) & FLAG_ENTERED) != 0) && ++thread.uncontrolled >= every) {
            // The last call that can overflow the stack: after it the thread is in the control invocation, or is not.
            thread.controlStart = stopwatch();
            thread.uncontrolled = 0;
            thread.root = id;
            thread.controlDepth = 1;
            thread.depth = -1;
            return;
        }
        thread.depth = -1;
        boolean inside = false;
        try {
            if ((U.getByte(flags + id) & FLAG_ENTERED) == 0) {
                entered(id);
                markEntered(id);
            }
            long time = time(thread);
            if (thread.position >= thread.end || (time & ~MAX_PAYLOAD) != 0) {
                time = nextChunk(thread, time);
            }
            long position = thread.position;
            U.putLong(position, KIND_ROOT << KIND_SHIFT | (long) id << ID_SHIFT | time);
            thread.position = position + 8;
            thread.root = id;
            inside = true;
        } finally {
            thread.depth = inside ? 1 : 0;
        }
    }

    /**
     * A thread that was in a root when recording began enters an instrumented method, while none that it entered since is on its
     * stack: out of the root's old code, which has no probes, or out of code that has nothing to do with it, if the root has returned.
     *
     * @return whether the thread is in the call graph
     */
    private static boolean enterFromOpen(HeadwaterV1Thread thread, int id) {
        int[] open = thread.open;
        if (open == null || thread.depth != 0) {
            return false;
        }
        thread.depth = -1;
        boolean inside = false;
        try {
            long start = stopwatch();
            int left = openCalls(thread.tid);
            pause(thread, PAUSE_OPEN_CALLS, stopwatch() - start);
            while (thread.openCount > left) {
                write(thread, KIND_EXIT, open[thread.openCount - 1]);
                thread.openCount--;
            }
            if (left == 0) {
                thread.open = null;
                return false;
            }
            if ((U.getByte(flags + id) & FLAG_ENTERED) == 0) {
                start = stopwatch();
                entered(id);
                markEntered(id);
                pause(thread, PAUSE_HOTSWAP, stopwatch() - start);
            }
            write(thread, KIND_ENTER, id);
            thread.root = id;
            inside = true;
        } finally {
            thread.depth = inside ? 1 : 0;
        }
        return true;
    }

    private static void write(HeadwaterV1Thread thread, long kind, int id) {
        long time = time(thread);
        if (thread.position >= thread.end || (time & ~MAX_PAYLOAD) != 0) {
            time = nextChunk(thread, time);
        }
        append(thread, kind << KIND_SHIFT | (long) id << ID_SHIFT | time);
    }

    /** Scheme B (JFluid 6.2): before its first execution, what this method calls gets instrumented. */
    private static void firstCall(HeadwaterV1Thread thread, int id) {
        long start = stopwatch();
        int depth = thread.depth;
        thread.depth = -depth;
        try {
            entered(id);
            markEntered(id);
        } finally {
            thread.depth = depth;
        }
        pause(thread, PAUSE_HOTSWAP, stopwatch() - start);
    }

    private static void markEntered(int id) {
        U.putByte(flags + id, (byte) (U.getByte(flags + id) | FLAG_ENTERED));
    }

    private static void pause(HeadwaterV1Thread thread, int reason, long duration) {
        if (thread.position >= thread.end) {
            nextChunk(thread, 0);
        }
        if (thread.head == 0 && !thread.virtual) {
            // What goes to the sink is counted: events, and nothing else.
            return;
        }
        long payload = duration > MAX_PAYLOAD ? MAX_PAYLOAD : duration;
        append(thread, KIND_PAUSE << KIND_SHIFT | (long) reason << ID_SHIFT | payload);
    }

    private static void append(HeadwaterV1Thread thread, long word) {
        long position = thread.position;
        U.putLong(position, word);
        thread.position = position + 8;
    }

    /**
     * Makes room for one word, or more.
     *
     * @param time the event's, if the chunk before were not full
     * @return the event's time in the chunk that it goes into
     */
    private static long nextChunk(HeadwaterV1Thread thread, long time) {
        int depth = thread.depth;
        if (depth > 0) {
            thread.depth = -depth;
        }
        try {
            if (thread.virtual) {
                return nextSlot(thread, time);
            }
            long waited = renew(thread);
            if (thread.head != 0) {
                append(thread, KIND_THREAD << KIND_SHIFT | thread.tid & MAX_THREAD);
                appendWait(thread, waited);
            }
            return 0;
        } finally {
            thread.depth = depth;
        }
    }

    /**
     * Gives a virtual thread room for one word in its carrier's chunk. There may be many more such threads in the call graph than
     * there are chunks, and all but a few of them stand still.
     *
     * <p>Between here and the word's being stored nothing can take the thread off its carrier.
     */
    private static long nextSlot(HeadwaterV1Thread thread, long time) {
        HeadwaterV1Thread carrier = thread.session == session ? carrier() : null;
        if (carrier == null) {
            if (thread.session == session) {
                U.getAndAddLong(null, segment + OFFSET_LOST, 1);
            }
            thread.position = SINK;
            thread.end = SINK + 8;
            return 0;
        }
        // Room that was given is used up once its word is there: a StackOverflowError may have come between.
        if (carrier.head != 0 && carrier.position < carrier.end && U.getLong(carrier.position) != 0) {
            carrier.position += 8;
        }
        boolean goesOn = carrier.writer == thread && thread.carrier == carrier;
        if (!goesOn || thread.base != carrier.base) {
            time = time(carrier);
        }
        long waited = 0;
        if (carrier.end - carrier.position < 16 || (time & ~MAX_PAYLOAD) != 0) {
            waited = renew(carrier);
            time = 0;
            goesOn = false;
        }
        if (carrier.head == 0) {
            // What goes to the sink is counted: the event, and nothing else.
            carrier.writer = null;
            thread.position = SINK;
            thread.end = SINK + 8;
            carrier.position += 8;
            return 0;
        }
        if (!goesOn) {
            int run = thread.run + 1 & MAX_RUN;
            thread.run = run == 0 ? 1 : run;
            append(carrier, KIND_THREAD << KIND_SHIFT | (long) thread.run << THREAD_BITS | thread.tid & MAX_THREAD);
            appendWait(carrier, waited);
            carrier.writer = thread;
            thread.carrier = carrier;
        }
        thread.base = carrier.base;
        thread.scale = carrier.scale;
        thread.position = carrier.position;
        thread.end = carrier.position + 8;
        return time;
    }

    private static void appendWait(HeadwaterV1Thread thread, long waited) {
        if (waited != 0) {
            append(thread, KIND_PAUSE << KIND_SHIFT | (long) PAUSE_BUFFER << ID_SHIFT | waited);
        }
    }

    /**
     * Gives a chunk back and takes another. Waits when none is free, for a limited time; after that the words go to the sink and
     * are counted. The time is then the new chunk's base.
     *
     * @return how long it waited
     */
    private static long renew(HeadwaterV1Thread owner) {
        boolean fromSink = owner.head == 0 && owner.position != 0;
        release(owner);
        long waited = 0;
        if (!claim(owner) && waiting && !fromSink && owner.session == session && recording) {
            boolean claimed = false;
            long start = System.nanoTime();
            long measuredStart = stopwatch();
            // Others may be faster to claim what has become free.
            while (!claimed && System.nanoTime() - start < LONGEST_WAIT && awaitChunk()) {
                claimed = claim(owner);
            }
            waited = stopwatch() - measuredStart;
        }
        if (owner.head == 0) {
            owner.position = SINK;
            owner.end = SINK + CHUNK_BYTES;
        }
        return waited;
    }

    /**
     * Takes a free chunk: one of the lowest, which are still in the caches, as long as the tool keeps up; else the next
     * behind the one that was taken last, so that a full buffer is not searched from its beginning each time.
     */
    private static boolean claim(HeadwaterV1Thread thread) {
        long now = rebase(thread);
        if (now < thread.latest) {
            now = thread.latest;
        }
        if (thread.session != session) {
            return false;
        }
        int count = chunks;
        int warm = count < WARM_CHUNKS ? count : WARM_CHUNKS;
        for (int i = 0; i < warm; i++) {
            if (claim(thread, now, i)) {
                return true;
            }
        }
        // A hint, for which threads race; it may even be of a larger buffer.
        int hint = lastClaimed;
        int first = hint < count ? hint : 0;
        for (int i = 1; i <= count; i++) {
            int index = first + i < count ? first + i : first + i - count;
            if (claim(thread, now, index)) {
                lastClaimed = index;
                return true;
            }
        }
        return false;
    }

    private static boolean claim(HeadwaterV1Thread thread, long now, int index) {
        long head = heads + (long) index * CHUNK_HEAD_BYTES;
        // Acquire: pairs with the tool's release of STATE_FREE, so that the chunk's zeros are there.
        if (U.getIntVolatile(null, head + HEAD_STATE) != STATE_FREE
                || !U.compareAndSetInt(null, head + HEAD_STATE, STATE_FREE, STATE_CLAIMED)) {
            return false;
        }
        U.putLong(head + HEAD_CLAIM, U.getAndAddLong(null, segment + OFFSET_CLAIMS, 1));
        U.putLong(head + HEAD_THREAD, thread.tid);
        U.putLong(head + HEAD_BASE_NS, now);
        // Release: pairs with the tool's acquire in Segment::claimed.
        U.putIntRelease(null, head + HEAD_STATE, STATE_OWNED);
        thread.head = head;
        thread.position = data + (long) index * CHUNK_BYTES;
        thread.end = thread.position + CHUNK_BYTES;
        return true;
    }

    private static void release(HeadwaterV1Thread thread) {
        if (thread.head != 0) {
            thread.latest = latest(thread);
            // Release: the tool sees all words when it sees FULL.
            U.putIntRelease(null, thread.head + HEAD_STATE, STATE_FULL);
            thread.head = 0;
        } else if (thread.position != 0 && thread.session == session) {
            U.getAndAddLong(null, segment + OFFSET_LOST, thread.position - SINK >> 3);
        }
        thread.position = 0;
        thread.end = 0;
    }

    /** Time of the latest event in the thread's chunk, or of the chunk's base. */
    private static long latest(HeadwaterV1Thread thread) {
        long base = U.getLong(thread.head + HEAD_BASE_NS);
        for (long at = thread.position - 8; at >= thread.end - CHUNK_BYTES; at -= 8) {
            long word = U.getLong(at);
            if (word >>> KIND_SHIFT <= KIND_ROOT) {
                return base + (word & MAX_PAYLOAD);
            }
        }
        return base;
    }

    /** The state of a thread that enters the call graph for the first time, or again after it was given up for dead. */
    private static HeadwaterV1Thread register() {
        Thread self = Thread.currentThread();
        long tid = U.getLong(self, TID);
        HeadwaterV1Thread thread;
        synchronized (LOCK) {
            if (!recording) {
                return null;
            }
            thread = current();
            if (thread != null) {
                thread.dead = false;
                return thread;
            }
            try {
                thread = new HeadwaterV1Thread(tid, session, VIRTUAL_THREAD != null && VIRTUAL_THREAD.isInstance(self));
                thread.run = forgottenRun;
                insert(thread);
            } catch (OutOfMemoryError e) {
                // The program's to meet, not ours to throw.
                return null;
            }
        }
        // Without a name there is nothing to tell of a virtual thread, and there may be very many.
        if (!thread.virtual || U.getReference(self, NAME) != "") {
            started(self, tid, thread.virtual);
        }
        return thread;
    }

    /** Whose chunk the current thread, which is virtual, writes into; {@code null} if there is none. */
    private static HeadwaterV1Thread carrier() {
        for (;;) {
            Thread on = (Thread) U.getReference(Thread.currentThread(), CARRIER);
            if (on == null) {
                return null;
            }
            // The carrier may have calls of its own in the call graph: those are under its own number.
            long key = ~U.getLong(on, TID);
            HeadwaterV1Thread carrier = find(key);
            if (carrier != null) {
                return carrier;
            }
            synchronized (LOCK) {
                if (!recording) {
                    return null;
                }
                try {
                    if (find(key) == null) {
                        insert(new HeadwaterV1Thread(key, session, false));
                    }
                } catch (OutOfMemoryError e) {
                    return null;
                }
            }
            // Waiting for the lock, it may have changed its carrier.
        }
    }

    private static void insert(HeadwaterV1Thread thread) {
        HeadwaterV1Thread[] table = threads;
        if ((threadCount + 1) * 2 > table.length) {
            int alive = 1;
            for (HeadwaterV1Thread other : table) {
                if (other != null && !other.dead) {
                    alive++;
                }
            }
            int length = 64;
            while (length < alive * 3) {
                length *= 2;
            }
            HeadwaterV1Thread[] larger = new HeadwaterV1Thread[length];
            threadCount = 0;
            for (HeadwaterV1Thread other : table) {
                if (other == null) {
                    continue;
                }
                if (!other.dead) {
                    put(larger, other);
                } else if (other.run > forgottenRun) {
                    forgottenRun = other.run;
                }
            }
            put(larger, thread);
            // The entries are there for whoever sees the new table.
            U.storeFence();
            threads = larger;
        } else {
            put(table, thread);
        }
    }

    private static void put(HeadwaterV1Thread[] table, HeadwaterV1Thread thread) {
        int at = (int) thread.tid & table.length - 1;
        while (table[at] != null) {
            at = (at + 1) & table.length - 1;
        }
        table[at] = thread;
        threadCount++;
    }

    private static Class<?> virtualThreadClass() {
        try {
            return Class.forName("java.lang.VirtualThread", false, null);
        } catch (ClassNotFoundException none) {
            return null;
        }
    }

    // What follows is called by the agent.

    /** Begins a session over a freshly mapped segment. Nothing is recorded yet. */
    private static void attach(long segmentAddress, int chunkCount, long chunkData, long readTsc) {
        synchronized (LOCK) {
            session++;
            U.ensureClassInitialized(HeadwaterV1Handles.class);
            segment = segmentAddress;
            heads = segmentAddress + CHUNK_HEADS;
            chunks = chunkCount;
            lastClaimed = 0;
            data = segmentAddress + chunkData;
            flags = segmentAddress + FLAGS;
            waiting = U.getInt(segmentAddress + OFFSET_OVERFLOW) == 0;
            clock = U.getInt(segmentAddress + OFFSET_CLOCK_PERIOD) == 0 ? NANO_TIME : segmentAddress + OFFSET_CLOCK;
            if (tscFunction == 0) {
                // An earlier session's stays: the handle is a constant, and the agent's library is never unloaded.
                tscFunction = readTsc;
            }
            threads = NO_THREADS;
            threadCount = 0;
        }
    }

    /** Goes over to the time stamp counter if the tool wants it, and says what became of that; or to threads' CPU time. */
    private static void chooseClock() {
        int source = U.getInt(segment + OFFSET_CLOCK_SOURCE);
        if (source == SOURCE_THREAD_CPU) {
            // Linked here, so that no probe has to.
            cpuTime();
            clock = THREAD_CPU;
        } else if (source == SOURCE_TSC) {
            if (clock == NANO_TIME && startTsc()) {
                clock = TSC;
            } else if (clock != TSC) {
                U.putInt(segment + OFFSET_CLOCK_SOURCE, SOURCE_NANO_TIME);
            }
        }
    }

    /**
     * Makes the time stamp counter ready: links all that reading it needs, and times it.
     *
     * @return whether this JVM can read it
     */
    private static boolean startTsc() {
        try {
            for (int i = 0; i < WARM_READS; i++) {
                HeadwaterV1Tsc.read();
            }
        } catch (LinkageError e) {
            return false;
        }
        HeadwaterV1Thread reading = new HeadwaterV1Thread(0, 0, false);
        scale = 0;
        narrowest = Long.MAX_VALUE;
        firstTime = Long.MAX_VALUE;
        readTogether(reading);
        firstTime = readTogether(reading);
        firstTicks = reading.base;
        while (scale == 0 && System.nanoTime() - firstTime < LONGEST_START) {
            readTogether(reading);
        }
        return scale > SLOWEST_SCALE && scale < FASTEST_SCALE;
    }

    /** A thread is in calls of these methods that began before recording, the outermost first. */
    private static void open(long tid, int[] methods) {
        synchronized (LOCK) {
            if (!recording) {
                return;
            }
            HeadwaterV1Thread thread = find(tid);
            if (thread == null) {
                thread = new HeadwaterV1Thread(tid, session, false);
                insert(thread);
            }
            thread.openCount = methods.length;
            // The count and the numbers are there for a thread that sees the array.
            U.storeFence();
            thread.open = methods;
        }
    }

    /** A thread has returned from all such calls. */
    private static void returned(long tid) {
        HeadwaterV1Thread thread = find(tid);
        if (thread != null) {
            thread.open = null;
        }
    }

    private static void record() {
        synchronized (LOCK) {
            controlEvery = U.getInt(segment + OFFSET_CONTROL);
            recording = true;
        }
    }

    /** @return the time at which recording ended */
    private static long stop() {
        synchronized (LOCK) {
            recording = false;
            // Threads that still write to the sink will not tell any more.
            for (HeadwaterV1Thread thread : threads) {
                if (thread != null && !thread.virtual && thread.session == session && thread.head == 0 && thread.position != 0) {
                    U.getAndAddLong(null, segment + OFFSET_LOST, thread.position - SINK >> 3);
                }
            }
            threads = NO_THREADS;
            threadCount = 0;
            // Classes are not to be kept loaded on our account.
            revealed = revealedTable(64);
            revealedCount = 0;
            return now();
        }
    }

    /** The current thread is about to end. */
    private static void threadEnd() {
        long tid = U.getLong(Thread.currentThread(), TID);
        end(find(tid));
        end(find(~tid));
    }

    private static void end(HeadwaterV1Thread thread) {
        if (thread != null) {
            release(thread);
            thread.dead = true;
        }
    }

    /** The current thread stood still on the profiler's account, outside the runtime. */
    private static void paused(int reason, long duration) {
        HeadwaterV1Thread thread = current();
        if (thread != null && thread.depth > 0) {
            pause(thread, reason, duration);
        }
    }

    /**
     * Makes the clock ready, and times the probes with it. JFluid 5.3: what a probe pair costs between its own timestamps (inner)
     * and outside them (outer), in compiled code.
     *
     * @return inner, outer, what a pair costs outside the root's context, and the standard deviations of the first two, in ns
     */
    private static double[] calibrate() {
        final int rounds = 64;
        final int pairs = CHUNK_BYTES / 16;
        final long shortest = 200_000_000;
        final long longest = 1_500_000_000;
        chooseClock();
        HeadwaterV1Thread self = new HeadwaterV1Thread(U.getLong(Thread.currentThread(), TID), 0, false);
        self.depth = 1;
        self.root = NO_METHOD;
        synchronized (LOCK) {
            insert(self);
        }
        markEntered(0);
        // The real chunks, as many as threads go through when the tool keeps up, but hidden from the tool.
        long[] hidden = hideChunks();
        double[] inner = new double[rounds];
        double[] outer = new double[rounds];
        double[] outside = new double[rounds];
        long start = System.nanoTime();
        long fastest = Long.MAX_VALUE;
        long improved = start;
        // The last rounds count. By then the loops are compiled: they have not become faster for twice as long as they took to
        // become so. An interpreter alone gets through at least the rounds.
        for (int round = 0;; round++) {
            long now = System.nanoTime();
            long elapsed = now - start;
            boolean steady = elapsed > shortest && now - improved > 2 * (improved - start);
            if (round >= rounds && (steady || elapsed > longest)) {
                break;
            }
            long words = hidden[round % hidden.length];
            self.position = words;
            self.end = words + CHUNK_BYTES;
            rebase(self);
            long before = stopwatch();
            probedRound(pairs);
            long after = stopwatch();
            self.depth = 0;
            probedRound(pairs);
            long afterOutside = stopwatch();
            self.depth = 1;
            if (afterOutside - before < fastest - (fastest >> 5)) {
                fastest = afterOutside - before;
                improved = System.nanoTime();
            }
            int slot = round % rounds;
            // The loop around the pairs costs nothing beside them: a processor does both at once.
            double both = (double) (after - before) / pairs;
            // A coarse clock does not move within a pair: half of the pair is taken to lie before the reading.
            inner[slot] = clock <= NANO_TIME ? (double) between(words, self.position) / pairs : both / 2;
            outer[slot] = Math.max(0, both - inner[slot]);
            outside[slot] = (double) (afterOutside - after) / pairs;
        }
        self.dead = true;
        self.depth = 0;
        showChunks(hidden);
        return new double[] {
            quietMean(inner), quietMean(outer), quietMean(outside), quietDeviation(inner), quietDeviation(outer)
        };
    }

    /** Claims free chunks without telling the tool. The addresses of their words; of the sink, when there are none. */
    private static long[] hideChunks() {
        long[] found = new long[WARM_CHUNKS];
        int count = 0;
        for (int i = 0; i < chunks && count < found.length; i++) {
            if (U.compareAndSetInt(null, heads + (long) i * CHUNK_HEAD_BYTES + HEAD_STATE, STATE_FREE, STATE_CLAIMED)) {
                found[count++] = data + (long) i * CHUNK_BYTES;
            }
        }
        if (count == 0) {
            return new long[] {SINK};
        }
        long[] hidden = new long[count];
        System.arraycopy(found, 0, hidden, 0, count);
        return hidden;
    }

    /** Gives hidden chunks back, zeroed. */
    private static void showChunks(long[] hidden) {
        for (long words : hidden) {
            if (words != SINK) {
                U.setMemory(words, CHUNK_BYTES, (byte) 0);
                long head = heads + (words - data) / CHUNK_BYTES * CHUNK_HEAD_BYTES;
                // Release: pairs with the next claimer's acquire.
                U.putIntRelease(null, head + HEAD_STATE, STATE_FREE);
            }
        }
    }

    /** Nanoseconds between entries and their exits, of pairs that lie one behind the other. */
    private static long between(long words, long end) {
        long sum = 0;
        for (long at = words; at < end; at += 16) {
            sum += (U.getLong(at + 8) & MAX_PAYLOAD) - (U.getLong(at) & MAX_PAYLOAD);
        }
        return sum;
    }

    private static void probedRound(int pairs) {
        for (int i = 0; i < pairs; i++) {
            probed(i);
        }
    }

    /** The shape that the rewriter gives to methods. */
    private static void probed(int i) {
        enter(0);
        try {
            calibrationWork = i;
        } catch (Throwable any) {
            thrown(0);
            throw any;
        }
        exit(0);
    }

    /** Mean of the lower half: what other programs on the machine add is not the probe's. Sorts its argument. */
    private static double quietMean(double[] values) {
        sort(values);
        double sum = 0;
        for (int i = 0; i < values.length / 2; i++) {
            sum += values[i];
        }
        return sum / (values.length / 2);
    }

    /** Standard deviation of the lower half of sorted values. */
    private static double quietDeviation(double[] values) {
        double mean = quietMean(values);
        double sum = 0;
        for (int i = 0; i < values.length / 2; i++) {
            sum += (values[i] - mean) * (values[i] - mean);
        }
        return Math.sqrt(sum / (values.length / 2));
    }

    private static void sort(double[] values) {
        for (int i = 1; i < values.length; i++) {
            double value = values[i];
            int at = i;
            for (; at > 0 && values[at - 1] > value; at--) {
                values[at] = values[at - 1];
            }
            values[at] = value;
        }
    }

    /** An instrumented method is entered for the first time. Returns when its callees are instrumented, or a deadline has passed. */
    private static native void entered(int id);

    /** Waits until a chunk is free, or a deadline has passed. */
    private static native boolean awaitChunk();

    /** A method is called by reflection for the first time. Returns when it is instrumented, or a deadline has passed. */
    private static native void reveal(Object executable);

    /** The same, by a method handle. */
    static native void revealHandle(Class<?> owner, String name, String descriptor);

    /** How many of the current thread's calls from before recording are still open. */
    private static native int openCalls(long tid);

    /** CPU time of the current thread, or of its carrier, in ns. */
    private static native long cpuTime();

    /** A thread has entered the call graph for the first time. */
    private static native void started(Thread thread, long tid, boolean isVirtual);
}
