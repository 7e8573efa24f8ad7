package java.lang;

import static java.lang.HeadwaterV1.ID_SHIFT;
import static java.lang.HeadwaterV1.KIND_PAUSE;
import static java.lang.HeadwaterV1.KIND_ROOT;
import static java.lang.HeadwaterV1.KIND_SHIFT;
import static java.lang.HeadwaterV1.KIND_THREAD;
import static java.lang.HeadwaterV1.MAX_PAYLOAD;
import static java.lang.HeadwaterV1.PAUSE_BUFFER;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.ForceInline;

/**
 * The chunks of the shared segment: a thread claims one, fills it, and gives it back to the tool. A virtual thread writes into its
 * carrier's.
 */
final class HeadwaterV1Chunks {
    // The segment's layout, as in the crate headwater-protocol; a test compares them.
    private static final int OFFSET_CLAIMS = 64;
    private static final int OFFSET_LOST = 128;
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
    /** Of a chunk, at most. */
    private static final int CHUNK_BYTES = 32 * 1024;
    private static final int THREAD_BITS = 36;
    private static final long MAX_THREAD = (1L << 36) - 1;
    private static final int MAX_RUN = (1 << 25) - 1;
    private static final int OFFSET_OVERFLOW = 28;
    /** Nanoseconds. */
    private static final long LONGEST_WAIT = 3_000_000_000L;
    /** Half a megabyte. */
    private static final int WARM_CHUNKS = 16;

    private static final Unsafe U = Unsafe.getUnsafe();
    /** Where words go when no chunk is to be had: overwritten again and again, and counted. */
    private static final long SINK = U.allocateMemory(CHUNK_BYTES);

    static long segment;
    /** How many there are. */
    static int count;
    /** Bytes of each. */
    static int bytes;
    /**
     * What claiming a chunk takes, all of one segment: a thread may be stopped in the midst of it, by a debugger, while the session
     * ends and another one begins. An address of two segments' parts could lie outside of both.
     */
    private static long[] shape;
    // Places in it.
    private static final int CLAIMS = 0;
    private static final int HEADS = 1;
    private static final int WORDS = 2;
    private static final int COUNT = 3;
    private static final int BYTES = 4;
    /** Index of a chunk. */
    private static int lastClaimed;
    /** A thread for whose events there is no room waits, instead of losing them. */
    private static boolean waiting;

    private HeadwaterV1Chunks() {}

    /** Goes over to a freshly mapped segment. */
    static void attach(long segmentAddress, int chunks, int chunkBytes, long chunkData) {
        segment = segmentAddress;
        count = chunks;
        bytes = chunkBytes;
        lastClaimed = 0;
        long[] next = {
            segmentAddress + OFFSET_CLAIMS, segmentAddress + CHUNK_HEADS, segmentAddress + chunkData, chunks, chunkBytes
        };
        // Whoever sees the array sees what is in it.
        U.storeFence();
        shape = next;
        waiting = U.getInt(segmentAddress + OFFSET_OVERFLOW) == 0;
    }

    /**
     * Makes room for one word, or more.
     *
     * @param time the event's, if the chunk before were not full
     * @return the event's time in the chunk that it goes into
     */
    static long next(HeadwaterV1Thread thread, long time) {
        if (isLate(thread)) {
            thread.head = 0;
            thread.position = SINK;
            thread.end = SINK + CHUNK_BYTES;
            return 0;
        }
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
                HeadwaterV1Threads.tookChunk(thread);
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
        HeadwaterV1Thread carrier = HeadwaterV1Threads.carrier();
        if (carrier == null) {
            if (!isLate(thread)) {
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
            time = HeadwaterV1Clock.stamp(carrier, 0);
        }
        long waited = 0;
        if (carrier.end - carrier.position < 16 || !HeadwaterV1Clock.fit(time, 0)) {
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

    static boolean hasRoom(HeadwaterV1Thread thread) {
        return thread.position < thread.end;
    }

    @ForceInline
    static void append(HeadwaterV1Thread thread, long word) {
        long position = thread.position;
        U.putLong(position, word);
        thread.position = position + 8;
    }

    /** Writes something that is no event: what happened to a thread beside its calls. */
    static void note(HeadwaterV1Thread thread, int what, long payload) {
        if (isLate(thread)) {
            return;
        }
        if (!hasRoom(thread)) {
            next(thread, 0);
        }
        if (thread.head == 0 && !thread.virtual) {
            // What goes to the sink is counted: events, and nothing else.
            return;
        }
        append(thread, KIND_PAUSE << KIND_SHIFT | (long) what << ID_SHIFT | payload);
    }

    /**
     * Whether the state is an earlier recording's: the tool has given its chunk to others, or will. A thread finds out where it
     * may have waited for long; in a probe it may still be writing the one word that it has begun.
     */
    static boolean isLate(HeadwaterV1Thread thread) {
        return thread.source == HeadwaterV1Clock.LATE;
    }

    private static boolean mayClaim(HeadwaterV1Thread thread) {
        return !isLate(thread) && !thread.calibrates;
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
        if (!claim(owner) && waiting && !fromSink && mayClaim(owner) && HeadwaterV1.recording) {
            boolean claimed = false;
            long start = System.nanoTime();
            long measuredStart = HeadwaterV1Clock.stopwatch();
            // Others may be faster to claim what has become free.
            while (!claimed && mayClaim(owner) && System.nanoTime() - start < LONGEST_WAIT && HeadwaterV1.awaitChunk()) {
                claimed = claim(owner);
            }
            waited = HeadwaterV1Clock.stopwatch() - measuredStart;
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
        long now = HeadwaterV1Clock.rebase(thread);
        if (now < thread.latest) {
            now = thread.latest;
        }
        if (!mayClaim(thread)) {
            return false;
        }
        long[] segment = shape;
        int chunks = (int) segment[COUNT];
        int warm = chunks < WARM_CHUNKS ? chunks : WARM_CHUNKS;
        for (int i = 0; i < warm; i++) {
            if (claim(thread, now, segment, i)) {
                return true;
            }
        }
        // A hint, for which threads race; it may even be of a larger buffer.
        int hint = lastClaimed;
        int first = hint < chunks ? hint : 0;
        for (int i = 1; i <= chunks; i++) {
            int index = first + i < chunks ? first + i : first + i - chunks;
            if (claim(thread, now, segment, index)) {
                lastClaimed = index;
                return true;
            }
        }
        return false;
    }

    private static boolean claim(HeadwaterV1Thread thread, long now, long[] segment, int index) {
        long head = segment[HEADS] + (long) index * CHUNK_HEAD_BYTES;
        // Acquire: pairs with the tool's release of STATE_FREE, so that the chunk's zeros are there.
        if (U.getIntVolatile(null, head + HEAD_STATE) != STATE_FREE
                || !U.compareAndSetInt(null, head + HEAD_STATE, STATE_FREE, STATE_CLAIMED)) {
            return false;
        }
        U.putLong(head + HEAD_CLAIM, U.getAndAddLong(null, segment[CLAIMS], 1));
        U.putLong(head + HEAD_THREAD, thread.tid);
        U.putLong(head + HEAD_BASE_NS, now);
        // Release: pairs with the tool's acquire in Segment::claimed.
        U.putIntRelease(null, head + HEAD_STATE, STATE_OWNED);
        thread.head = head;
        thread.position = segment[WORDS] + index * segment[BYTES];
        thread.end = thread.position + segment[BYTES];
        return true;
    }

    static void release(HeadwaterV1Thread thread) {
        if (thread.head != 0) {
            if (!isLate(thread)) {
                thread.latest = latest(thread);
                // Release: the tool sees all words when it sees FULL.
                U.putIntRelease(null, thread.head + HEAD_STATE, STATE_FULL);
            }
            thread.head = 0;
        } else {
            countLost(thread);
        }
        thread.position = 0;
        thread.end = 0;
    }

    /** Counts what a thread wrote to the sink, and will not tell any more. */
    static void countLost(HeadwaterV1Thread thread) {
        if (mayClaim(thread) && thread.head == 0 && thread.position != 0) {
            U.getAndAddLong(null, segment + OFFSET_LOST, thread.position - SINK >> 3);
        }
    }

    /** Time of the latest event in the thread's chunk, or of the chunk's base. */
    private static long latest(HeadwaterV1Thread thread) {
        long base = U.getLong(thread.head + HEAD_BASE_NS);
        for (long at = thread.position - 8; at >= thread.end - bytes; at -= 8) {
            long word = U.getLong(at);
            if (word >>> KIND_SHIFT <= KIND_ROOT) {
                return base + (word & MAX_PAYLOAD);
            }
        }
        return base;
    }

    /** Claims free chunks without telling the tool. The addresses of their words; of the sink, when there are none. */
    static long[] hide() {
        long[] found = new long[WARM_CHUNKS];
        long[] segment = shape;
        int claimed = 0;
        for (int i = 0; i < segment[COUNT] && claimed < found.length; i++) {
            if (U.compareAndSetInt(
                    null, segment[HEADS] + (long) i * CHUNK_HEAD_BYTES + HEAD_STATE, STATE_FREE, STATE_CLAIMED)) {
                found[claimed++] = segment[WORDS] + i * segment[BYTES];
            }
        }
        if (claimed == 0) {
            return new long[] {SINK};
        }
        long[] hidden = new long[claimed];
        System.arraycopy(found, 0, hidden, 0, claimed);
        return hidden;
    }

    /** Gives hidden chunks back, zeroed. */
    static void show(long[] hidden) {
        long[] segment = shape;
        for (long words : hidden) {
            if (words != SINK) {
                U.setMemory(words, segment[BYTES], (byte) 0);
                long head = segment[HEADS] + (words - segment[WORDS]) / segment[BYTES] * CHUNK_HEAD_BYTES;
                // Release: pairs with the next claimer's acquire.
                U.putIntRelease(null, head + HEAD_STATE, STATE_FREE);
            }
        }
    }
}
