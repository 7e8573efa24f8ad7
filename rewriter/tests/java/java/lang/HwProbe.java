package java.lang;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import jdk.internal.misc.VM;

/**
 * What instrumented classes call; keeps a shadow stack a thread, and says at exit what was counted:
 *
 * <pre>PROBES entered left thrown open abandoned astray</pre>
 *
 * Open are the calls that live threads are still in. Abandoned are constructors whose {@code super(...)} threw: the JVM
 * accepts no handler there, so their end is seen when their caller ends. Astray are exits that are not those of the
 * innermost open call or have what another thread's call kept, and calls that an ended thread has not left. After correct rewriting
 * {@code entered == left + thrown + open + abandoned}, and {@code astray == 0}.
 *
 * <p>Every method of java.base calls it, from the JVM's first bytecode on. So it calls nothing there but native methods,
 * allocates nothing but arrays ({@code Object.<init>} is instrumented, too), and asks for the current thread only once
 * there is one. Programs with virtual threads can be counted only when java.base is not instrumented:
 * {@code VirtualThread.mount} is entered by one thread and left by another.
 */
public class HwProbe implements Runnable {
    /** The id of the constructors of java.lang.Thread: the first to be entered makes the main thread. */
    private static final int THREAD_INIT = 1;

    /** Set in the ids of constructors. */
    private static final int CONSTRUCTOR = 1;

    /** A thread's state: the counts, the depth, and the ids of the open calls from STACK on. */
    private static final int ENTERED = 0;
    private static final int LEFT = 1;
    private static final int THROWN = 2;
    private static final int ABANDONED = 3;
    private static final int ASTRAY = 4;
    private static final int DEPTH = 5;
    private static final int STACK = 6;

    /** The last of the system's hooks (java.lang.Shutdown): it runs when those of the application have run. */
    private static final int LAST_HOOK = 9;

    /** No call's: it executed nothing. */
    private static final Object NOBODY = new int[0];

    /** Threads, each before its state; found by identity, with linear probing. Written under the lock only. */
    private static Object[] table;
    private static int used;

    /** The state of the only thread there is, before it can be asked for. */
    private static long[] boot;

    static {
        boolean booting = VM.initLevel() == 0;
        Object[] empty = new Object[2048];
        if (booting) {
            boot = new long[1024];
        }
        table = empty;
        Shutdown.add(LAST_HOOK, true, new HwProbe());
    }

    /** Returns the current thread, if there is one yet: what a call keeps for its exit must be its own. */
    public static Object enter(int id) {
        if (boot != null && id == THREAD_INIT) {
            long[] state = boot;
            boot = null;
            insert(Thread.currentThread(), state);
        }
        long[] state = current();
        if (state == null) {
            return null;
        }
        int depth = (int) state[DEPTH];
        if (STACK + depth == state.length) {
            state = grow(state);
        }
        state[STACK + depth] = id;
        state[ENTERED]++;
        state[DEPTH] = depth + 1;
        return boot == null ? Thread.currentThread() : null;
    }

    public static void exit(Object token, int id) {
        leave(token, id, LEFT);
    }

    public static void thrown(Object token, int id) {
        leave(token, id, THROWN);
    }

    public static void exit(int id) {
        leave(null, id, LEFT);
    }

    public static void thrown(int id) {
        leave(null, id, THROWN);
    }

    public static void exit(Object token, long executed, int id) {
        leave(executed > 0 ? token : NOBODY, id, LEFT);
    }

    public static void thrown(Object token, long executed, int id) {
        leave(executed > 0 ? token : NOBODY, id, THROWN);
    }

    /** Only called, to be verified. */
    public static void allocated(Class<?> type, int id) {
    }

    public static void allocated(int length, int type, int id) {
    }

    public static void allocated(Object arrays, int dimensions, int id) {
    }

    private static void leave(Object token, int id, int how) {
        long[] state = current();
        if (state == null) {
            return;
        }
        state[how]++;
        if (token != null && token != Thread.currentThread()) {
            state[ASTRAY]++;
        }
        int depth = (int) state[DEPTH] - 1;
        int abandoned = 0;
        while (depth >= 0 && state[STACK + depth] != id && (state[STACK + depth] & CONSTRUCTOR) != 0) {
            depth--;
            abandoned++;
        }
        if (depth < 0 || state[STACK + depth] != id) {
            state[ASTRAY]++;
            return;
        }
        state[ABANDONED] += abandoned;
        state[DEPTH] = depth;
    }

    /** The current thread's state; null while this class is being initialised. */
    private static long[] current() {
        if (boot != null) {
            return boot;
        }
        Object[] entries = table;
        if (entries == null) {
            return null;
        }
        Thread thread = Thread.currentThread();
        int at = place(entries, thread);
        if (entries[at] == thread && entries[at + 1] != null) {
            return (long[]) entries[at + 1];
        }
        return insert(thread, new long[256]);
    }

    /** Where a thread is, or belongs. */
    private static int place(Object[] entries, Thread thread) {
        int mask = entries.length - 1;
        int at = System.identityHashCode(thread) << 1 & mask;
        while (entries[at] != null && entries[at] != thread) {
            at = at + 2 & mask;
        }
        return at;
    }

    /** Makes a thread known; one that only a table seen half had made unknown is found again. */
    private static synchronized long[] insert(Thread thread, long[] state) {
        int at = place(table, thread);
        if (table[at] == thread) {
            return (long[]) table[at + 1];
        }
        if (++used * 4 > table.length) {
            Object[] larger = new Object[table.length * 2];
            for (int i = 0; i < table.length; i += 2) {
                if (table[i] != null) {
                    int to = place(larger, (Thread) table[i]);
                    larger[to] = table[i];
                    larger[to + 1] = table[i + 1];
                }
            }
            table = larger;
            at = place(table, thread);
        }
        table[at + 1] = state;
        table[at] = thread;
        return state;
    }

    /** The current thread's state with room for twice the depth. */
    private static synchronized long[] grow(long[] state) {
        long[] larger = new long[state.length * 2];
        for (int i = 0; i < state.length; i++) {
            larger[i] = state[i];
        }
        if (boot != null) {
            boot = larger;
        } else {
            table[place(table, Thread.currentThread()) + 1] = larger;
        }
        return larger;
    }

    /** Sums up. Nothing is called while a state is read: the calls would count. */
    @Override
    public void run() {
        long entered = 0;
        long left = 0;
        long thrown = 0;
        long open = 0;
        long abandoned = 0;
        long astray = 0;
        for (int i = 0; i < table.length; i += 2) {
            if (table[i] == null) {
                continue;
            }
            boolean alive = ((Thread) table[i]).isAlive();
            long[] state = (long[]) table[i + 1];
            // Of a thread that runs meanwhile, another reading is taken when this one does not fit together.
            int attempts = alive ? 1000 : 1;
            long[] read = new long[STACK];
            do {
                for (int field = STACK - 1; field >= 0; field--) {
                    read[field] = state[field];
                }
            } while (read[ENTERED] != read[LEFT] + read[THROWN] + read[ABANDONED] + read[DEPTH] && --attempts > 0);
            entered += read[ENTERED];
            left += read[LEFT];
            thrown += read[THROWN];
            abandoned += read[ABANDONED];
            astray += read[ASTRAY];
            if (alive) {
                open += read[DEPTH];
            } else {
                astray += read[DEPTH];
            }
        }
        if (entered == 0) {
            return;
        }
        String counts = entered + " " + left + " " + thrown + " " + open + " " + abandoned + " " + astray;
        try {
            new FileOutputStream(FileDescriptor.err).write(("PROBES " + counts + "\n").getBytes());
        } catch (IOException ignored) {
            // Nobody listens any more.
        }
    }
}
