package java.lang;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.ReservedStackAccess;

/**
 * What instrumented methods call. Lives in java.base, because every class can call it there; its name carries the version,
 * because a class so defined stays until the JVM ends.
 *
 * <p>The fast path allocates nothing, locks nothing and calls only intrinsics, none of which can be instrumented. The
 * slow paths (a method's first call, a full chunk, a thread's first entry) run with {@link HeadwaterV1Thread#depth} negated, so
 * that instrumented code they happen to run records nothing.
 *
 * <p>Only the last call in a probe stores the event, and plain field writes follow it: a StackOverflowError inside a probe
 * leaves both the word and the depth changed, or neither.
 */
public final class HeadwaterV1 {
    // The event word and the segment's layout, as in the crate headwater-protocol; a test compares them.
    private static final int ID_SHIFT = 41;
    private static final int KIND_SHIFT = 61;
    private static final long MAX_PAYLOAD = (1L << 41) - 1;
    private static final long KIND_ENTER = 1;
    private static final long KIND_EXIT = 2;
    private static final long KIND_THROW = 3;
    private static final long KIND_ROOT = 4;
    private static final long KIND_PAUSE = 5;
    private static final long KIND_CONTROL = 6;
    private static final long KIND_THREAD = 7;
    private static final int PAUSE_HOTSWAP = 0;
    private static final int PAUSE_BUFFER = 1;
    private static final int OFFSET_CLAIMS = 64;
    private static final int OFFSET_LOST = 128;
    private static final int OFFSET_CLOCK_PERIOD = 16;
    private static final int OFFSET_CONTROL = 20;
    private static final int OFFSET_OVERFLOW = 28;
    private static final int OFFSET_CLOCK = 192;
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
    /** Nanoseconds. */
    private static final long LONGEST_WAIT = 3_000_000_000L;
    private static final int CHUNK_BYTES = 32 * 1024;
    /** Half a megabyte. */
    private static final int WARM_CHUNKS = 16;

    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long TID = U.objectFieldOffset(Thread.class, "tid");
    private static final Class<?> VIRTUAL_THREAD = virtualThreadClass();
    private static final HeadwaterV1Thread[] NO_THREADS = new HeadwaterV1Thread[1];
    /** Guards registration, start and stop. Nothing waits while holding it. */
    private static final Object LOCK = new Object();
    /** Where words go when no chunk is to be had: overwritten again and again, and counted. */
    private static final long SINK = U.allocateMemory(CHUNK_BYTES);

    /** Open-addressing table by thread id, a power of two long, at most half full. */
    private static HeadwaterV1Thread[] threads = NO_THREADS;
    private static int threadCount;
    /** Address of the method flags. The memory stays mapped for good once there has been a session. */
    private static long flags;
    private static long segment;
    /** Of so many calls of a root by a thread, one is a control invocation: timed, and not recorded. 0 for none, 1 for all. */
    private static int controlEvery;
    /** Address of the coarse clock that the tool keeps; 0 when times are exact. */
    private static long clock;
    /** A thread for whose events there is no room waits, instead of losing them. */
    private static boolean waiting;
    private static long heads;
    private static long data;
    private static int chunks;
    /** Index of a chunk. */
    private static int lastClaimed;
    private static int session;
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
            }
            return;
        }
        if ((U.getByte(flags + id) & FLAG_ENTERED) == 0) {
            firstCall(thread, id);
        }
        long now = now();
        if (thread.position >= thread.end || now - thread.base > MAX_PAYLOAD) {
            now = nextChunk(thread, now);
        }
        long position = thread.position;
        U.putLong(position, KIND_ENTER << KIND_SHIFT | (long) id << ID_SHIFT | now - thread.base);
        thread.position = position + 8;
        if (id == thread.root) {
            thread.depth++;
        }
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
        long now = now();
        if (thread.position >= thread.end || now - thread.base > MAX_PAYLOAD) {
            now = nextChunk(thread, now);
        }
        long position = thread.position;
        U.putLong(position, kind << KIND_SHIFT | (long) id << ID_SHIFT | now - thread.base);
        thread.position = position + 8;
        if (id == thread.root && --thread.depth == 0) {
            outside(thread);
        }
    }

    /** A thread keeps its chunk for the next time, unless there are too many threads for that. */
    private static void outside(HeadwaterV1Thread thread) {
        if (thread.virtual || threadCount * 2 > chunks) {
            release(thread);
            thread.dead = thread.virtual;
        }
    }

    private static void leaveControl(HeadwaterV1Thread thread, int id) {
        if (--thread.controlDepth != 0) {
            return;
        }
        long duration = System.nanoTime() - thread.controlStart;
        thread.depth = 0;
        if (thread.position >= thread.end) {
            nextChunk(thread, now());
        }
        long payload = duration > MAX_PAYLOAD ? MAX_PAYLOAD : duration;
        append(thread, KIND_CONTROL << KIND_SHIFT | (long) id << ID_SHIFT | payload);
        outside(thread);
    }

    /** Read once an event. */
    private static long now() {
        long coarse = clock;
        return coarse == 0 ? System.nanoTime() : U.getLongOpaque(null, coarse);
    }

    private static HeadwaterV1Thread current() {
        HeadwaterV1Thread[] table = threads;
        long tid = U.getLong(Thread.currentThread(), TID);
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
            thread.controlStart = System.nanoTime();
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
            long now = now();
            if (thread.position >= thread.end || now - thread.base > MAX_PAYLOAD) {
                now = nextChunk(thread, now);
            }
            long position = thread.position;
            U.putLong(position, KIND_ROOT << KIND_SHIFT | (long) id << ID_SHIFT | now - thread.base);
            thread.position = position + 8;
            thread.root = id;
            inside = true;
        } finally {
            thread.depth = inside ? 1 : 0;
        }
    }

    /** Scheme B (JFluid 6.2): before its first execution, what this method calls gets instrumented. */
    private static void firstCall(HeadwaterV1Thread thread, int id) {
        long start = System.nanoTime();
        int depth = thread.depth;
        thread.depth = -depth;
        try {
            entered(id);
            markEntered(id);
        } finally {
            thread.depth = depth;
        }
        pause(thread, PAUSE_HOTSWAP, System.nanoTime() - start);
    }

    private static void markEntered(int id) {
        U.putByte(flags + id, (byte) (U.getByte(flags + id) | FLAG_ENTERED));
    }

    private static void pause(HeadwaterV1Thread thread, int reason, long duration) {
        if (thread.position >= thread.end) {
            nextChunk(thread, now());
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
     * Makes room for at least one word. Waits for a chunk when none is free, for a limited time, and records the wait;
     * after that the words go to the sink and are counted.
     *
     * @return the time now
     */
    private static long nextChunk(HeadwaterV1Thread thread, long now) {
        int depth = thread.depth;
        if (depth > 0) {
            thread.depth = -depth;
        }
        try {
            boolean fromSink = thread.head == 0 && thread.position != 0;
            release(thread);
            long waited = 0;
            if (!claim(thread, now) && waiting && !fromSink && thread.session == session && recording) {
                boolean claimed = false;
                long start = System.nanoTime();
                // Others may be faster to claim what has become free.
                while (!claimed && waited < LONGEST_WAIT && awaitChunk()) {
                    claimed = claim(thread, now);
                    waited = System.nanoTime() - start;
                }
                waited = System.nanoTime() - start;
                now += waited;
            }
            if (thread.head == 0) {
                thread.position = SINK;
                thread.end = SINK + CHUNK_BYTES;
                thread.base = now;
                return now;
            }
            append(thread, KIND_THREAD << KIND_SHIFT | thread.tid & MAX_PAYLOAD);
            if (waited != 0) {
                append(thread, KIND_PAUSE << KIND_SHIFT | (long) PAUSE_BUFFER << ID_SHIFT | waited);
            }
            return now;
        } finally {
            thread.depth = depth;
        }
    }

    /**
     * Takes a free chunk: one of the lowest, which are still in the caches, as long as the tool keeps up; else the next
     * behind the one that was taken last, so that a full buffer is not searched from its beginning each time.
     */
    private static boolean claim(HeadwaterV1Thread thread, long now) {
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
        thread.base = now;
        thread.position = data + (long) index * CHUNK_BYTES;
        thread.end = thread.position + CHUNK_BYTES;
        return true;
    }

    private static void release(HeadwaterV1Thread thread) {
        if (thread.head != 0) {
            // Release: the tool sees all words when it sees FULL.
            U.putIntRelease(null, thread.head + HEAD_STATE, STATE_FULL);
            thread.head = 0;
        } else if (thread.position != 0 && thread.session == session) {
            U.getAndAddLong(null, segment + OFFSET_LOST, thread.position - SINK >> 3);
        }
        thread.position = 0;
        thread.end = 0;
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
                insert(thread);
            } catch (OutOfMemoryError e) {
                // The program's to meet, not ours to throw.
                return null;
            }
        }
        started(self, tid);
        return thread;
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
            while (length < alive * 4) {
                length *= 2;
            }
            HeadwaterV1Thread[] larger = new HeadwaterV1Thread[length];
            threadCount = 0;
            for (HeadwaterV1Thread other : table) {
                if (other != null && !other.dead) {
                    put(larger, other);
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
            return Class.forName("java.lang.BaseVirtualThread", false, null);
        } catch (ClassNotFoundException none) {
            return null;
        }
    }

    // What follows is called by the agent.

    /** Begins a session over a freshly mapped segment. Nothing is recorded yet. */
    private static void attach(long segmentAddress, int chunkCount, long chunkData) {
        synchronized (LOCK) {
            session++;
            segment = segmentAddress;
            heads = segmentAddress + CHUNK_HEADS;
            chunks = chunkCount;
            lastClaimed = 0;
            data = segmentAddress + chunkData;
            flags = segmentAddress + FLAGS;
            waiting = U.getInt(segmentAddress + OFFSET_OVERFLOW) == 0;
            clock = U.getInt(segmentAddress + OFFSET_CLOCK_PERIOD) == 0 ? 0 : segmentAddress + OFFSET_CLOCK;
            threads = NO_THREADS;
            threadCount = 0;
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
                if (thread != null && thread.session == session && thread.head == 0 && thread.position != 0) {
                    U.getAndAddLong(null, segment + OFFSET_LOST, thread.position - SINK >> 3);
                }
            }
            threads = NO_THREADS;
            threadCount = 0;
            return now();
        }
    }

    /** The current thread is about to end. */
    private static void threadEnd() {
        HeadwaterV1Thread thread = current();
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
     * JFluid 5.3: what a probe pair costs between its own timestamps (inner) and outside them (outer), in compiled code.
     *
     * @return inner, outer, what a pair costs outside the root's context, and the standard deviations of the first two, in ns
     */
    private static double[] calibrate() {
        final int rounds = 64;
        final int pairs = 1000;
        final long budget = 150_000_000;
        long buffer = U.allocateMemory(pairs * 16);
        HeadwaterV1Thread self = new HeadwaterV1Thread(U.getLong(Thread.currentThread(), TID), 0, false);
        self.depth = 1;
        self.root = NO_METHOD;
        self.base = now();
        synchronized (LOCK) {
            insert(self);
        }
        markEntered(0);
        double[] inner = new double[rounds];
        double[] outer = new double[rounds];
        double[] outside = new double[rounds];
        long start = System.nanoTime();
        // The last rounds count: by then the loops are compiled. An interpreter alone gets through at least the rounds.
        for (int round = 0; round < rounds || System.nanoTime() - start < budget; round++) {
            self.position = buffer;
            self.end = buffer + pairs * 16;
            long before = System.nanoTime();
            bareRound(pairs);
            long between = System.nanoTime();
            probedRound(pairs);
            long after = System.nanoTime();
            self.depth = 0;
            probedRound(pairs);
            long afterOutside = System.nanoTime();
            self.depth = 1;
            long sum = 0;
            for (long at = buffer; at < self.position; at += 16) {
                sum += (U.getLong(at + 8) & MAX_PAYLOAD) - (U.getLong(at) & MAX_PAYLOAD);
            }
            int slot = round % rounds;
            double both = (double) (after - between - (between - before)) / pairs;
            // A coarse clock does not move within a pair: half of the pair is taken to lie before the reading.
            inner[slot] = clock == 0 ? (double) sum / pairs : both / 2;
            outer[slot] = Math.max(0, both - inner[slot]);
            outside[slot] = Math.max(0, (double) (afterOutside - after - (between - before)) / pairs);
        }
        self.dead = true;
        self.depth = 0;
        U.freeMemory(buffer);
        return new double[] {
            quietMean(inner), quietMean(outer), quietMean(outside), quietDeviation(inner), quietDeviation(outer)
        };
    }

    private static void bareRound(int pairs) {
        for (int i = 0; i < pairs; i++) {
            calibrationWork = i;
        }
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

    /** A thread has entered the call graph for the first time. */
    private static native void started(Thread thread, long tid);
}
