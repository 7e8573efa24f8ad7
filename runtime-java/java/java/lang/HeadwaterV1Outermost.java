package java.lang;

import static java.lang.HeadwaterV1.FLAG_ENTERED;
import static java.lang.HeadwaterV1.FLAG_OUTERMOST;
import static java.lang.HeadwaterV1.FLAG_ROOT;
import static java.lang.HeadwaterV1.ID_SHIFT;
import static java.lang.HeadwaterV1.KIND_CONTROL;
import static java.lang.HeadwaterV1.KIND_ENTER;
import static java.lang.HeadwaterV1.KIND_EXIT;
import static java.lang.HeadwaterV1.KIND_ROOT;
import static java.lang.HeadwaterV1.KIND_SHIFT;
import static java.lang.HeadwaterV1.MAX_PAYLOAD;
import static java.lang.HeadwaterV1.PAUSE_HOTSWAP;

/** The outermost of a thread's calls in the call graph: by which the thread comes in, and goes out. */
final class HeadwaterV1Outermost {
    private static final int PAUSE_OPEN_CALLS = 3;

    private HeadwaterV1Outermost() {}

    /**
     * A thread outside the call graph enters a method by which it may come into it.
     *
     * @param thread the thread's state, or {@link HeadwaterV1Threads#NOBODY}
     * @return the thread's state, if the call's exit has to know of it
     */
    static HeadwaterV1Thread enter(HeadwaterV1Thread thread, int id) {
        if (thread.handed && thread.depth == 0) {
            enterHanded(thread, id);
            return thread;
        }
        if (HeadwaterV1.is(id, FLAG_ROOT)) {
            return enterRoot(thread, id);
        }
        HeadwaterV1Open open = thread.open;
        if (open != null && thread.depth == 0 && !open.mayLook()) {
            return null;
        }
        if (enterFromOpen(thread, id)) {
            return thread;
        }
        thread.comesInByRootsOnly();
        return null;
    }

    /**
     * A root is entered by a thread outside the call graph (or inside the runtime, which does not count).
     *
     * @return the thread's state, if the call's exit has to know of it
     */
    private static HeadwaterV1Thread enterRoot(HeadwaterV1Thread thread, int id) {
        if (thread.dead) {
            thread = HeadwaterV1Threads.register();
            if (thread == null) {
                return null;
            }
        }
        // What the agent has told of a thread that had no state is known from here on.
        if (enterFromOpen(thread, id)) {
            return thread;
        }
        if (thread.depth < 0) {
            if (thread.controlDepth > 0 && id == thread.root) {
                thread.controlDepth++;
                return thread;
            }
            return null;
        }
        // What is not recorded is only watched.
        int every = HeadwaterV1Chunks.isLate(thread) ? 1 : HeadwaterV1.controlEvery;
        // A method's first call is recorded, because it is what reveals its callees.
        if (every != 0 && (every == 1 || HeadwaterV1.is(id, FLAG_ENTERED)) && ++thread.uncontrolled >= every) {
            // The last call that can overflow the stack: after it the thread is in the control invocation, or is not.
            thread.since = HeadwaterV1Clock.stopwatch();
            thread.uncontrolled = 0;
            thread.root = id;
            thread.controlDepth = 1;
            thread.depth = -1;
            return thread;
        }
        if (!HeadwaterV1.is(id, FLAG_ENTERED)) {
            thread.depth = -1;
            try {
                HeadwaterV1.revealCallees(id);
            } finally {
                thread.depth = 0;
            }
            // That takes its time, and the agent may have told of this thread meanwhile.
            if (enterFromOpen(thread, id)) {
                return thread;
            }
        }
        thread.depth = -1;
        boolean inside = false;
        try {
            HeadwaterV1.write(thread, KIND_ROOT, id);
            thread.root = id;
            inside = true;
        } finally {
            thread.depth = inside ? 1 : 0;
        }
        return thread;
    }

    /**
     * A thread that was in a root when recording began enters an instrumented method, while none that it entered since is on its
     * stack: out of the root's old code, which has no probes, or out of code that has nothing to do with it, if the root has returned.
     *
     * @return whether the thread is in the call graph
     */
    private static boolean enterFromOpen(HeadwaterV1Thread thread, int id) {
        if (thread.open == null || thread.depth != 0) {
            return false;
        }
        thread.depth = -1;
        boolean inside = false;
        try {
            if (!isOpen(thread)) {
                return false;
            }
            if (!HeadwaterV1.is(id, FLAG_ENTERED)) {
                long start = HeadwaterV1Clock.stopwatch();
                HeadwaterV1.revealCallees(id);
                HeadwaterV1.pause(thread, PAUSE_HOTSWAP, HeadwaterV1Clock.stopwatch() - start);
            }
            HeadwaterV1.mark(id, FLAG_OUTERMOST);
            HeadwaterV1.write(thread, KIND_ENTER, id);
            thread.root = id;
            inside = true;
        } finally {
            thread.depth = inside ? 1 : 0;
        }
        return true;
    }

    /** Whether any of a thread's calls from before recording is still open; records those that are not. */
    static boolean isOpen(HeadwaterV1Thread thread) {
        HeadwaterV1Open open = thread.open;
        if (open == null) {
            return false;
        }
        long start = HeadwaterV1Clock.stopwatch();
        int left = HeadwaterV1.openCalls(thread.tid);
        if (HeadwaterV1Chunks.isLate(thread)) {
            // Nothing is known of them any more.
            return false;
        }
        long now = HeadwaterV1Clock.stopwatch();
        HeadwaterV1.pause(thread, PAUSE_OPEN_CALLS, now - start);
        open.hasLooked(now - start, now);
        while (thread.openCount > left) {
            HeadwaterV1.write(thread, KIND_EXIT, open.methods[thread.openCount - 1]);
            thread.openCount--;
        }
        if (left == 0) {
            thread.open = null;
        }
        return left != 0;
    }

    /** A thread that runs what was handed to it inside the call graph enters a method, while it is in no other. */
    private static void enterHanded(HeadwaterV1Thread thread, int id) {
        thread.depth = -1;
        boolean inside = false;
        try {
            HeadwaterV1Handover.tell(thread);
            HeadwaterV1.revealCallees(id);
            HeadwaterV1.mark(id, FLAG_OUTERMOST);
            HeadwaterV1.write(thread, KIND_ENTER, id);
            thread.root = id;
            inside = true;
        } finally {
            thread.depth = inside ? 1 : 0;
        }
    }

    /** A thread keeps its chunk for the next time, unless there are too many threads for that. */
    static void outside(HeadwaterV1Thread thread) {
        HeadwaterV1Waits.outside(thread);
        if (HeadwaterV1.leaving && !thread.virtual) {
            stay();
        }
        if (thread.virtual) {
            // What it was started for may not be all done.
            thread.dead = !thread.handed;
        } else if (HeadwaterV1Threads.count * 2 > HeadwaterV1Chunks.count && !thread.calibrates) {
            HeadwaterV1Chunks.release(thread);
        }
    }

    /** Waits outside until the code that it comes from is no longer instrumented, for a limited time. */
    private static void stay() {
        try {
            HeadwaterV1.awaitGivenBack();
        } catch (StackOverflowError e) {
            // The program has not met it.
        }
    }

    /** A control invocation, or a call of its root within, ends. */
    static void leaveControl(HeadwaterV1Thread thread, int id) {
        if (--thread.controlDepth != 0) {
            return;
        }
        long duration = HeadwaterV1Clock.stopwatch() - thread.since;
        thread.since = 0;
        thread.depth = 0;
        // Of another carrier's CPU time nothing is known.
        boolean isTimed = duration >= 0 && !(thread.virtual && HeadwaterV1Clock.isCpuTime());
        if (isTimed && !HeadwaterV1Chunks.isLate(thread)) {
            if (!HeadwaterV1Chunks.hasRoom(thread)) {
                HeadwaterV1Chunks.next(thread, 0);
            }
            long payload = duration > MAX_PAYLOAD ? MAX_PAYLOAD : duration;
            HeadwaterV1Chunks.append(thread, KIND_CONTROL << KIND_SHIFT | (long) id << ID_SHIFT | payload);
        }
        outside(thread);
    }
}
