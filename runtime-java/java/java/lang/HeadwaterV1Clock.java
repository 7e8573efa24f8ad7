package java.lang;

import static java.lang.HeadwaterV1.ID_SHIFT;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.ForceInline;

/** What an event's time is read from: {@code System.nanoTime()}, the time stamp counter, a coarse clock, or the thread's CPU time. */
final class HeadwaterV1Clock {
    // The segment's layout, as in the crate headwater-protocol; a test compares them.
    private static final int OFFSET_CLOCK_PERIOD = 16;
    private static final int OFFSET_CLOCK = 192;
    private static final int OFFSET_CLOCK_SOURCE = 24;
    private static final int SOURCE_NANO_TIME = 0;
    private static final int SOURCE_TSC = 1;
    private static final int SOURCE_THREAD_CPU = 2;
    /** Value of {@link #source}: {@code System.nanoTime()}. */
    private static final int NANO_TIME = 0;
    /** Value of {@link #source}: a word that the tool sets once a period. */
    private static final int COARSE = 1;
    /** Value of {@link #source}: the time stamp counter. */
    private static final int TSC = 2;
    /** Value of {@link #source}: the thread's CPU time. */
    private static final int THREAD_CPU = 3;
    /** Value of a thread's {@link HeadwaterV1Cursor#source}: recording has ended, its chunk may be another thread's by now. */
    static final int LATE = 4;
    /** Value of a thread's source: before each event it tells what {@link HeadwaterV1Counters} have counted, so none is stored the fast way. */
    static final int COUNTED = 5;
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

    /** What the times of threads that come into the call graph from now on are read from. */
    static int source;
    /** Address of the coarse clock. */
    private static long coarse;
    /** Address of a function of the agent's that returns the time stamp counter. */
    static long tscFunction;
    /** Nanoseconds a tick of the counter, as far as is known, with {@link #SCALE_SHIFT} fractional bits. */
    private static long scale;
    /** The counter and {@code System.nanoTime()} at one moment in the session's beginning. */
    private static long firstTicks;
    private static long firstTime;
    /** The fewest ticks that were seen to pass around a reading of the clock. */
    private static long narrowest;

    private HeadwaterV1Clock() {}

    /**
     * An event's word: its prefix, which is the kind and the method, and the nanoseconds since the chunk's base. If the chunk is too
     * old for that, or the thread's recording over, or more is to be told, the word does not {@link #fit}.
     *
     * <p>The base is taken off the prefix, not off the time: a clock is slow, and this leaves one instruction that waits for it.
     *
     * <p>Inlined also into probes that were mostly run outside the call graph until they were compiled.
     */
    @ForceInline
    static long stamp(HeadwaterV1Thread thread, long prefix) {
        return stamp(thread, thread.source, prefix);
    }

    /** The same, of a thread that tells what has been counted. */
    static long stampCounted(HeadwaterV1Thread thread, long prefix) {
        return stamp(thread, source, prefix);
    }

    @ForceInline
    private static long stamp(HeadwaterV1Thread thread, int from, long prefix) {
        if (from == NANO_TIME) {
            return System.nanoTime() + (prefix - thread.base);
        }
        if (from == COARSE) {
            return U.getLongOpaque(null, coarse) + (prefix - thread.base);
        }
        if (from == TSC) {
            long ticks = HeadwaterV1Tsc.read() - thread.base;
            return ticks >>> TICK_BITS == 0 ? (ticks * thread.scale >>> SCALE_SHIFT) + prefix : prefix - 1;
        }
        return from == THREAD_CPU ? HeadwaterV1.cpuTime() + (prefix - thread.base) : prefix - 1;
    }

    /** Whether the time in a word has left its prefix as it was. */
    static boolean fit(long word, long prefix) {
        return (int) (word >>> ID_SHIFT) == (int) (prefix >>> ID_SHIFT);
    }

    /**
     * Lets the thread's times begin now.
     *
     * @return now: {@code System.nanoTime()}, what the coarse clock says, or the thread's CPU time
     */
    static long rebase(HeadwaterV1Thread thread) {
        if (source == TSC) {
            return readTogether(thread);
        }
        return thread.base = source == THREAD_CPU ? HeadwaterV1.cpuTime() : now();
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

    /** Whether times are read from a word that the tool sets once a period. */
    static boolean isCoarse() {
        return source == COARSE;
    }

    /** {@code System.nanoTime()}, or what the coarse clock says. */
    static long now() {
        return source == COARSE ? U.getLongOpaque(null, coarse) : System.nanoTime();
    }

    /** Whether times are the thread's own: of a virtual one, its carrier's. */
    static boolean isCpuTime() {
        return source == THREAD_CPU;
    }

    /** What a duration is measured by: as the event's times, where those are the thread's own; else {@code System.nanoTime()}. */
    static long stopwatch() {
        return source == THREAD_CPU ? HeadwaterV1.cpuTime() : System.nanoTime();
    }

    /** Begins with the coarse clock, if the tool keeps one in this segment, or {@code System.nanoTime()}. */
    static void attach(long segment, long readTsc) {
        coarse = segment + OFFSET_CLOCK;
        source = U.getInt(segment + OFFSET_CLOCK_PERIOD) == 0 ? NANO_TIME : COARSE;
        if (tscFunction == 0) {
            // An earlier session's stays: the handle is a constant, and the agent's library is never unloaded.
            tscFunction = readTsc;
        }
    }

    /** Goes over to the time stamp counter if the tool wants it, and says what became of that; or to threads' CPU time. */
    static void choose(long segment) {
        int wanted = U.getInt(segment + OFFSET_CLOCK_SOURCE);
        if (wanted == SOURCE_THREAD_CPU) {
            // Linked here, so that no probe has to.
            HeadwaterV1.cpuTime();
            source = THREAD_CPU;
        } else if (wanted == SOURCE_TSC) {
            if (source == NANO_TIME && startTsc()) {
                source = TSC;
            } else if (source != TSC) {
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
        HeadwaterV1Thread reading = new HeadwaterV1Thread(0, false);
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
}
