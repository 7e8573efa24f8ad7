package java.lang;

import jdk.internal.misc.Unsafe;

/**
 * Work that is handed from thread to thread. What is handed over inside the call graph gets a number, which the thread that hands it
 * over writes where it is, and the one that runs it where it begins: what that enters until it is done counts as called there.
 *
 * <p>What a thread runs while it is in methods of the call graph anyhow belongs to these.
 */
final class HeadwaterV1Handover {
    private static final int HANDOVER_SUBMIT = 16;
    private static final int HANDOVER_RUN = 17;
    private static final int HANDOVER_END = 18;
    private static final int HANDOVER_DROP = 19;
    private static final int START = 0;
    private static final int TASK = 1;
    private static final int STAGE = 2;
    private static final int REJECTED = 3;
    private static final int NEXT = 4;
    private static final int RAN = 5;
    /** Of what is run: the thread's own work, from its beginning to its end. */
    private static final int OWN = 1;
    /** Of what is run: on whatever thread, perhaps one that was started for it. */
    private static final int ANYWHERE = 2;

    private static final Unsafe U = Unsafe.getUnsafe();
    private static final Class<?> STAGES = HeadwaterV1Threads.jdkClass("java.util.concurrent.CompletableFuture$UniCompletion");
    /** Where a stage of a {@code CompletableFuture} has its executor, if it has one. */
    private static final long EXECUTOR = HeadwaterV1Threads.field(STAGES, "executor");

    /** What a virtual thread is handed to its scheduler in, each time that it goes on. */
    private static final Class<?> ADAPTED = HeadwaterV1Threads.jdkClass("java.util.concurrent.ForkJoinTask$AdaptedRunnableAction");
    private static final Class<?> EXECUTED = HeadwaterV1Threads.jdkClass("java.util.concurrent.ForkJoinTask$RunnableExecuteAction");
    private static final long OF_ADAPTED = HeadwaterV1Threads.field(ADAPTED, "runnable");
    private static final long OF_EXECUTED = HeadwaterV1Threads.field(EXECUTED, "runnable");

    private HeadwaterV1Handover() {}

    /** Whether a virtual thread goes on by a task: what it does is its own, and no work of the task's. */
    private static boolean isVirtualThread(Object task) {
        Class<?> type = task.getClass();
        long field = type == ADAPTED ? OF_ADAPTED : type == EXECUTED ? OF_EXECUTED : -1;
        if (field < 0) {
            return false;
        }
        Object runnable = U.getReference(task, field);
        return runnable != null && runnable.getClass().getName().startsWith("java.lang.VirtualThread");
    }

    /** An object is about to be handed over. */
    static void handOver(Object object, int kind) {
        if (kind == NEXT) {
            // Of the one before, the end was not told.
            endAll();
            begin(object, 0);
            return;
        }
        if (kind == RAN) {
            end(object, 0);
            return;
        }
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread == null || thread.depth < 0 || !isInside(thread)) {
            if (kind == TASK && HeadwaterV1HandedOver.contains(object) && !HeadwaterV1HandedOver.isStage(object)) {
                // Whoever runs it must not take it for the one that was handed over inside.
                remember(object, HeadwaterV1HandedOver.OUTSIDE, false);
            } else if (kind == REJECTED) {
                HeadwaterV1HandedOver.take(object);
            }
            return;
        }
        HeadwaterV1Counters.mark(thread);
        int depth = thread.depth;
        thread.depth = depth > 0 ? -depth : -1;
        try {
            switch (kind) {
                case START:
                    start(thread, (Thread) object);
                    break;
                case TASK:
                case STAGE:
                    if (kind == TASK
                            ? isVirtualThread(object) || HeadwaterV1HandedOver.isStage(object)
                            : runsAtOnce(object)) {
                        break;
                    }
                    long link = HeadwaterV1HandedOver.number();
                    if (remember(object, link, kind == STAGE)) {
                        tell(thread);
                        HeadwaterV1Chunks.note(thread, HANDOVER_SUBMIT, link);
                    }
                    break;
                case REJECTED:
                    long rejected = HeadwaterV1HandedOver.take(object);
                    if (rejected > HeadwaterV1HandedOver.OUTSIDE) {
                        HeadwaterV1Chunks.note(thread, HANDOVER_DROP, rejected);
                    }
                    break;
                default:
            }
        } finally {
            thread.depth = depth;
        }
        HeadwaterV1Counters.skip(thread);
    }

    private static boolean isInside(HeadwaterV1Thread thread) {
        return thread.depth > 0 || thread.handed || thread.open != null && HeadwaterV1Outermost.isOpen(thread);
    }

    /** Whether what waits for something else is run by the thread that does this. */
    private static boolean runsAtOnce(Object stage) {
        return EXECUTOR >= 0 && STAGES.isInstance(stage) && U.getReference(stage, EXECUTOR) == null;
    }

    private static boolean remember(Object object, long link, boolean stage) {
        try {
            return HeadwaterV1HandedOver.put(object, link, stage);
        } catch (OutOfMemoryError e) {
            // The program's to meet, not ours to throw: it will not be followed.
            return false;
        }
    }

    /** A thread is started: whatever it does was handed to it, but for what it takes on from outside the call graph. */
    private static void start(HeadwaterV1Thread thread, Thread started) {
        long link = HeadwaterV1HandedOver.number();
        if (HeadwaterV1Threads.expect(started, link)) {
            tell(thread);
            HeadwaterV1Chunks.note(thread, HANDOVER_SUBMIT, link);
        }
    }

    /** The current thread is about to run an object that may have been handed over. */
    static void begin(Object object, int kind) {
        if (kind == OWN || isVirtualThread(object)) {
            return;
        }
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.task != null && thread.task.task == object) {
            // It has been told before.
            return;
        }
        long link = HeadwaterV1HandedOver.take(object);
        // On a thread that was started inside, what was not handed over there is no part of what that was started for.
        if (link == HeadwaterV1HandedOver.NONE) {
            if (kind == ANYWHERE || thread == null || !thread.handed || thread.task != null || thread.depth != 0) {
                return;
            }
            link = HeadwaterV1HandedOver.OUTSIDE;
        }
        if (thread != null && (thread.depth != 0 || thread.open != null)) {
            // On a stack of the call graph it is called as anything is.
            if (thread.depth > 0 && link != HeadwaterV1HandedOver.OUTSIDE) {
                int depth = thread.depth;
                thread.depth = -depth;
                try {
                    HeadwaterV1Chunks.note(thread, HANDOVER_DROP, link);
                } finally {
                    thread.depth = depth;
                }
            }
            return;
        }
        if (thread == null || thread.dead) {
            thread = HeadwaterV1Threads.register();
        }
        if (thread != null) {
            run(thread, object, link);
        }
    }

    private static void run(HeadwaterV1Thread thread, Object object, long link) {
        thread.depth = -1;
        try {
            HeadwaterV1Task task = new HeadwaterV1Task(object, thread);
            tell(thread);
            HeadwaterV1Chunks.note(thread, HANDOVER_RUN, link);
            thread.task = task;
            thread.setHanded(link != HeadwaterV1HandedOver.OUTSIDE);
        } catch (OutOfMemoryError e) {
            // The program's to meet, not ours to throw: it is not followed.
        } finally {
            thread.depth = 0;
        }
    }

    private static void endAll() {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread != null && thread.task != null && thread.depth == 0) {
            end(null, 0);
        }
    }

    /** The current thread has run an object; or, where that is {@code null}, an exception has left it. */
    static void end(Object object, int kind) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread == null || thread.depth < 0) {
            return;
        }
        if (kind == OWN) {
            endThread(thread);
            return;
        }
        HeadwaterV1Task ended = thread.task;
        while (ended != null && (object == null ? ended.outer != null : ended.task != object)) {
            ended = ended.outer;
        }
        if (ended == null) {
            return;
        }
        thread.depth = -1;
        try {
            HeadwaterV1Task task;
            do {
                task = thread.task;
                HeadwaterV1Chunks.note(thread, HANDOVER_END, 0);
                thread.task = task.outer;
                thread.setHanded(task.outerHanded);
            } while (task != ended);
        } finally {
            // All that it was in has ended with it.
            thread.depth = 0;
        }
        HeadwaterV1Outermost.outside(thread);
    }

    /** Begins what the current thread was started for, if it has not begun to record that. */
    static void tell(HeadwaterV1Thread thread) {
        long link = thread.startedBy;
        if (link != 0) {
            HeadwaterV1Threads.tell(thread);
            HeadwaterV1Chunks.note(thread, HANDOVER_RUN, link);
            thread.startedBy = 0;
        }
    }

    /** The current thread ends: what it was started for is done. */
    static void endThread(HeadwaterV1Thread thread) {
        if (thread.handed && thread.task == null) {
            thread.depth = -1;
            try {
                if (thread.startedBy != 0) {
                    HeadwaterV1Chunks.note(thread, HANDOVER_DROP, thread.startedBy);
                } else {
                    HeadwaterV1Chunks.note(thread, HANDOVER_END, 0);
                }
            } finally {
                thread.depth = 0;
                thread.setHanded(false);
            }
        }
        if (thread.virtual) {
            thread.dead = true;
        }
    }
}
