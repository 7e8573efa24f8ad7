package java.lang;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import jdk.internal.vm.annotation.ReservedStackAccess;

/**
 * What instrumented methods call. Lives in java.base, because every class can call it there; its name carries the version,
 * because a class so defined stays until the JVM ends.
 *
 * <p>The fast path allocates nothing, locks nothing and calls only intrinsics and what reads the clock
 * ({@link HeadwaterV1Clock}), none of which can be instrumented. The slow paths (a method's first call, a full chunk, a thread's
 * first entry) run with {@link HeadwaterV1Thread#depth} negated, so that instrumented code they happen to run records nothing.
 *
 * <p>Only the last call in a probe stores the event, and plain field writes follow it: a StackOverflowError inside a probe
 * leaves both the word and the depth changed, or neither.
 */
public final class HeadwaterV1 {
    // The event word and the segment's layout, as in the crate headwater-protocol; a test compares them.
    static final int ID_SHIFT = 41;
    static final int KIND_SHIFT = 61;
    static final long MAX_PAYLOAD = (1L << 41) - 1;
    /** Whoever calls a probe with another number than a method's gets no further than the flags. */
    static final int MAX_ID = (1 << 20) - 1;
    static final long KIND_ENTER = 1;
    static final long KIND_EXIT = 2;
    static final long KIND_THROW = 3;
    static final long KIND_ROOT = 4;
    static final long KIND_PAUSE = 5;
    static final long KIND_CONTROL = 6;
    static final long KIND_THREAD = 7;
    static final int PAUSE_HOTSWAP = 0;
    static final int PAUSE_BUFFER = 1;
    static final byte FLAG_ENTERED = 1;
    static final byte FLAG_ROOT = 2;
    /** A thread has come into the graph by this method, though it is no root: its calls within are counted as a root's are. */
    static final byte FLAG_OUTERMOST = 4;
    // Bits of what a reflected method's kind is.
    static final int OF_CONSTRUCTOR = 1;
    static final int OF_HANDLE = 2;
    static final int OF_JDK_TOO = 4;
    // What becomes of an exception.
    static final int EXCEPTION_MADE = 0;
    static final int EXCEPTION_PASSING = 1;
    static final int EXCEPTION_CAUGHT = 2;

    private static final Unsafe U = Unsafe.getUnsafe();
    /** Guards registration, start and stop. Nothing waits while holding it. */
    static final Object LOCK = new Object();

    /** Address of the method flags. The memory stays mapped for good once there has been a session. */
    static long flags;
    /** Of so many calls of a root by a thread, one is a control invocation: timed, and not recorded. 0 for none, 1 for all. */
    static int controlEvery;
    static boolean recording;
    /** Threads in roots are known, though nothing is recorded any more. */
    static boolean watching;
    /** Code is being given back: who leaves the call graph waits for that, so that no call goes on with what is gone. */
    static boolean leaving;

    private HeadwaterV1() {}

    /**
     * First instruction of every instrumented method.
     *
     * @return what the call's exit is given: the thread's state, so that it need not be found again; {@code null} if the call is
     *     outside the call graph
     */
    public static Object enter(int id) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.currentOrNobody();
        long word = 0;
        if (thread.depth > 0) {
            if (U.getByte(flags + (id & MAX_ID)) == FLAG_ENTERED) {
                long prefix = prefix(KIND_ENTER, id);
                word = HeadwaterV1Clock.stamp(thread, prefix);
                // Written out, here and where a call is left: of what HeadwaterV1Clock.fit says C2 made two comparisons.
                if (thread.position < thread.end && (int) (word >>> ID_SHIFT) == (int) (prefix >>> ID_SHIFT)) {
                    HeadwaterV1Chunks.append(thread, word);
                    return thread;
                }
            }
        } else if (!is(id, FLAG_ROOT) && !thread.comesInByAny) {
            return null;
        }
        return enterElse(thread, id, word);
    }

    /**
     * Enters a method by more than storing a word. One call for all of that: each call that is compiled into a probe has the state of all
     * methods around it kept for it, which makes the compiler's work longer, and leaves less room for the program's own methods.
     *
     * @param word the event's; 0 if it has not been stamped
     */
    @DontInline
    private static HeadwaterV1Thread enterElse(HeadwaterV1Thread thread, int id, long word) {
        if (word != 0) {
            store(thread, prefix(KIND_ENTER, id), word);
            return thread;
        }
        if (thread.depth <= 0) {
            return HeadwaterV1Outermost.enter(thread, id);
        }
        // For the first time, or a method that is some thread's outermost.
        if (!is(id, FLAG_ENTERED)) {
            firstCall(thread, id);
        }
        write(thread, KIND_ENTER, id);
        if (id == thread.root) {
            thread.depth++;
        }
        return thread;
    }

    /**
     * A call that was not expected is about to be made: what it may run is instrumented before it is made for the first time.
     *
     * @param id the place's, of the same numbers as methods
     */
    public static void approached(int id) {
        if (!is(id, FLAG_ENTERED)) {
            approachedFirst(id);
        }
    }

    @DontInline
    private static void approachedFirst(int id) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread == null) {
            return;
        }
        if (thread.depth > 0) {
            firstCall(thread, id);
        } else if (thread.depth == 0 && (thread.open != null || thread.handed)) {
            // Out of code that has no probes of its own any more.
            thread.depth = -1;
            try {
                revealCallees(id);
            } finally {
                thread.depth = 0;
            }
        }
    }

    /**
     * A method is about to be called by reflection or by a method handle: what it may run is instrumented before.
     *
     * @param executable the method or constructor, or the direct handle of one
     * @param kind a sum of {@link #OF_CONSTRUCTOR}, {@link #OF_HANDLE} and {@link #OF_JDK_TOO}
     */
    public static void reflected(Object executable, int kind) {
        HeadwaterV1Revealed.call(executable, kind);
    }

    /**
     * A virtual call is about to be made: what it runs on an object of a class that has not been seen there is instrumented before.
     *
     * @param call stands for the called method's name and descriptor
     */
    public static void received(Object receiver, int call) {
        HeadwaterV1Receivers.receive(receiver, call);
    }

    /**
     * Where work is handed to another thread.
     *
     * @param object stands for the work
     * @param kind as in {@link HeadwaterV1Handover}
     */
    public static void handedOver(Object object, int kind) {
        HeadwaterV1Handover.handOver(object, kind);
    }

    /** Before such work is done. */
    public static void begun(Object object, int kind) {
        HeadwaterV1Handover.begin(object, kind);
    }

    /** When it has been done; with {@code null} if an exception has left it. */
    public static void done(Object object, int kind) {
        HeadwaterV1Handover.end(object, kind);
    }

    /**
     * An object has been made; its constructor has not been called.
     *
     * @param type its class; {@code null} in class files that are too old to name classes
     * @param site where, as the tool numbers them
     */
    public static void allocated(Class<?> type, int site) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.currentOrNobody();
        if (thread.depth > 0) {
            HeadwaterV1Sites.object(thread, type, site);
        }
    }

    /**
     * An array has been made.
     *
     * @param type of its elements, as in {@link HeadwaterV1Sites}
     */
    public static void allocated(int length, int type, int site) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.currentOrNobody();
        if (thread.depth > 0) {
            HeadwaterV1Sites.array(thread, length, type, site);
        }
    }

    /**
     * An array has been made with arrays in it.
     *
     * @param site of the outer one; those of the other dimensions follow
     */
    public static void allocated(Object array, int dimensions, int site) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.currentOrNobody();
        if (thread.depth > 0) {
            HeadwaterV1Sites.arrays(thread, array, dimensions, site);
        }
    }

    /** Before what may wait. */
    public static void waitBegins(int kind) {
        HeadwaterV1Waits.begin(kind);
    }

    /** When it is over. */
    public static void waitEnds(int kind) {
        HeadwaterV1Waits.end(kind);
    }

    /**
     * Before every return of an instrumented method.
     *
     * @param token what the call's {@link #enter} returned, perhaps in an earlier recording
     */
    @ReservedStackAccess
    public static void exit(Object token, int id) {
        if (token != null) {
            HeadwaterV1Leaving.leave((HeadwaterV1Thread) token, id, KIND_EXIT);
        }
    }

    /** When an exception leaves an instrumented method. */
    @ReservedStackAccess
    public static void thrown(Object token, int id) {
        if (token != null) {
            HeadwaterV1Leaving.leave((HeadwaterV1Thread) token, id, KIND_THROW);
        }
    }

    /** As {@link #thrown(Object, int)}, where exceptions are counted. */
    @ReservedStackAccess
    public static void thrown(Object exception, Object token, int id) {
        if (token != null) {
            exceptional(exception, EXCEPTION_PASSING);
            HeadwaterV1Leaving.leave((HeadwaterV1Thread) token, id, KIND_THROW);
        }
    }

    /** As above, of a method whose instructions are counted. */
    @ReservedStackAccess
    public static void thrown(Object exception, Object token, long executed, int id) {
        if (token != null) {
            exceptional(exception, EXCEPTION_PASSING);
            HeadwaterV1Leaving.leave((HeadwaterV1Thread) token, executed, id, KIND_THROW);
        }
    }

    /**
     * An exception has been made, or has come to a handler of an instrumented method.
     *
     * @param kind what becomes of it: {@link #EXCEPTION_MADE} and what follows
     */
    public static void exceptional(Object exception, int kind) {
        if (!HeadwaterV1Exceptions.counted) {
            return;
        }
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.depth > 0) {
            HeadwaterV1Exceptions.see(thread, exception, kind);
        }
    }

    /**
     * As {@link #exit(Object, int)}, of a method whose instructions are counted.
     *
     * @param executed how many the call has executed
     */
    @ReservedStackAccess
    public static void exit(Object token, long executed, int id) {
        if (token != null) {
            HeadwaterV1Leaving.leave((HeadwaterV1Thread) token, executed, id, KIND_EXIT);
        }
    }

    /** As {@link #thrown(Object, int)}, of such a method. */
    @ReservedStackAccess
    public static void thrown(Object token, long executed, int id) {
        if (token != null) {
            HeadwaterV1Leaving.leave((HeadwaterV1Thread) token, executed, id, KIND_THROW);
        }
    }

    /** As {@link #exit(int)}, of a part whose instructions are counted. */
    @ReservedStackAccess
    public static void exit(long executed, int id) {
        exit(HeadwaterV1Threads.current(), executed, id);
    }

    /** As {@link #thrown(int)}, of such a part. */
    @ReservedStackAccess
    public static void thrown(long executed, int id) {
        thrown(HeadwaterV1Threads.current(), executed, id);
    }

    /** Where control leaves an instrumented part of a method. */
    @ReservedStackAccess
    public static void exit(int id) {
        exit(HeadwaterV1Threads.current(), id);
    }

    /** When an exception leaves such a part. */
    @ReservedStackAccess
    public static void thrown(int id) {
        thrown(HeadwaterV1Threads.current(), id);
    }

    static void write(HeadwaterV1Thread thread, long kind, int id) {
        if (!HeadwaterV1Chunks.isLate(thread)) {
            long prefix = prefix(kind, id);
            store(thread, prefix, HeadwaterV1Clock.stamp(thread, prefix));
        }
    }

    @ForceInline
    static long prefix(long kind, int id) {
        return kind << KIND_SHIFT | (long) (id & MAX_ID) << ID_SHIFT;
    }

    /** Stores a word that may not fit into the chunk, by its place or by its time. */
    static void store(HeadwaterV1Thread thread, long prefix, long word) {
        boolean counted = thread.source == HeadwaterV1Clock.COUNTED;
        if (counted) {
            word = HeadwaterV1Counters.count(thread, prefix);
        }
        if (!HeadwaterV1Chunks.hasRoom(thread) || !HeadwaterV1Clock.fit(word, prefix)) {
            word = prefix | HeadwaterV1Chunks.next(thread, word - prefix);
        }
        if (counted) {
            // The clock's method handle, and a native method that is linked now, may have allocated.
            HeadwaterV1Counters.goOn(thread);
        }
        HeadwaterV1Chunks.append(thread, word);
    }

    /** Scheme B (JFluid 6.2): before its first execution, what this method calls gets instrumented. */
    private static void firstCall(HeadwaterV1Thread thread, int id) {
        long start = HeadwaterV1Clock.stopwatch();
        HeadwaterV1Counters.mark(thread);
        int depth = thread.depth;
        thread.depth = -depth;
        try {
            revealCallees(id);
        } finally {
            thread.depth = depth;
        }
        HeadwaterV1Counters.skip(thread);
        pause(thread, PAUSE_HOTSWAP, HeadwaterV1Clock.stopwatch() - start);
    }

    /** Has what a method calls instrumented, unless it has been. The thread is inside the runtime. */
    static void revealCallees(int id) {
        if (!is(id, FLAG_ENTERED)) {
            entered(id);
            mark(id, FLAG_ENTERED);
        }
    }

    @ForceInline
    static boolean is(int id, byte flag) {
        return (U.getByte(flags + (id & MAX_ID)) & flag) != 0;
    }

    static void mark(int id, byte flag) {
        if (!is(id, flag)) {
            U.getAndBitwiseOrByte(null, flags + (id & MAX_ID), flag);
        }
    }

    static void pause(HeadwaterV1Thread thread, int reason, long duration) {
        HeadwaterV1Chunks.note(thread, reason, duration > MAX_PAYLOAD ? MAX_PAYLOAD : duration);
    }

    /** An instrumented method is entered for the first time. Returns when its callees are instrumented, or a deadline has passed. */
    static native void entered(int id);

    /** Waits until a chunk is free, or a deadline has passed. */
    static native boolean awaitChunk();

    /** Whether somebody waits for what is being timed. */
    static native boolean isWanted();

    /** Waits until instrumented code has been given back, or a deadline has passed. */
    static native void awaitGivenBack();

    /** A method is called by reflection for the first time. Returns when it is instrumented, or a deadline has passed. */
    static native void reveal(Object executable);

    /** The same, by a method handle. */
    static native void revealHandle(Class<?> owner, String name, String descriptor);

    /** A call is made on an object of a class for the first time. Returns as above. */
    static native void revealReceiver(Class<?> type, int call);

    /** How many of the current thread's calls from before recording are still open. */
    static native int openCalls(long tid);

    /** The agent's number of a class; 0 if it has none any more. */
    static native long classNumber(Class<?> type);

    /** How large an object is, in bytes; 0 if that is not known. */
    static native long objectSize(Object object);

    /** CPU time of the current thread, or of its carrier, in ns. */
    static native long cpuTime();

    /** Reads what the kernel counts of the current thread, or of its carrier: see {@link HeadwaterV1Counters}. */
    static native long kernelCounters(int what);

    /** The time stamp counter, for {@link HeadwaterV1Tsc}. */
    static native long readTsc();

    /** A thread has entered the call graph for the first time. */
    static native void started(Thread thread, long tid, boolean isVirtual);
}
