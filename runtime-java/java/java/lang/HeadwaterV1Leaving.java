package java.lang;

import static java.lang.HeadwaterV1.ID_SHIFT;
import static java.lang.HeadwaterV1.KIND_PAUSE;
import static java.lang.HeadwaterV1.MAX_PAYLOAD;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;

/** How an instrumented method, or a part of one, is left. */
final class HeadwaterV1Leaving {
    private static final int COUNTER_BYTECODES = 48;
    private static final int WORD = 8;

    private static final Unsafe U = Unsafe.getUnsafe();
    /** Whether instructions are counted now; code that counts them may be there all the same. */
    static boolean counted;

    private HeadwaterV1Leaving() {}

    static void leave(HeadwaterV1Thread thread, int id, long kind) {
        long word = 0;
        if (thread.depth > 0) {
            long prefix = HeadwaterV1.prefix(kind, id);
            word = HeadwaterV1Clock.stamp(thread, prefix);
            if (id != thread.root && thread.position < thread.end && (int) (word >>> ID_SHIFT) == (int) (prefix >>> ID_SHIFT)) {
                HeadwaterV1Chunks.append(thread, word);
                return;
            }
        }
        leaveElse(thread, id, kind, word);
    }

    /** Leaves a method by more than storing a word, as {@code HeadwaterV1.enterElse} enters it. */
    @DontInline
    private static void leaveElse(HeadwaterV1Thread thread, int id, long kind, long word) {
        if (word == 0) {
            if (thread.depth < 0 && thread.controlDepth > 0 && id == thread.root) {
                HeadwaterV1Outermost.leaveControl(thread, id);
            }
            return;
        }
        HeadwaterV1.store(thread, HeadwaterV1.prefix(kind, id), word);
        if (id == thread.root && --thread.depth == 0) {
            HeadwaterV1Outermost.outside(thread);
        }
    }

    /**
     * Leaves a method whose instructions are counted. Their word comes before that of the exit, by which the tool knows whose they
     * are.
     *
     * @param executed how many
     */
    static void leave(HeadwaterV1Thread thread, long executed, int id, long kind) {
        if (!counted) {
            leave(thread, id, kind);
            return;
        }
        long word = 0;
        if (thread.depth > 0) {
            long prefix = HeadwaterV1.prefix(kind, id);
            word = HeadwaterV1Clock.stamp(thread, prefix);
            boolean fits = (int) (word >>> ID_SHIFT) == (int) (prefix >>> ID_SHIFT) && executed <= MAX_PAYLOAD;
            if (id != thread.root && thread.position + WORD < thread.end && fits) {
                HeadwaterV1Chunks.append(thread, HeadwaterV1.prefix(KIND_PAUSE, COUNTER_BYTECODES) | executed);
                HeadwaterV1Chunks.append(thread, word);
                return;
            }
        }
        leaveElse(thread, executed, id, kind, word);
    }

    /** The same by more than storing two words. */
    @DontInline
    private static void leaveElse(HeadwaterV1Thread thread, long executed, int id, long kind, long word) {
        if (word != 0) {
            for (long left = executed; left > 0; left -= MAX_PAYLOAD) {
                HeadwaterV1Chunks.note(thread, COUNTER_BYTECODES, left < MAX_PAYLOAD ? left : MAX_PAYLOAD);
            }
            // That may have taken another chunk, with a time base of its own.
            word = HeadwaterV1Clock.stamp(thread, HeadwaterV1.prefix(kind, id));
        }
        leaveElse(thread, id, kind, word);
    }
}
