package java.lang;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/** The threads that have entered the call graph in this session, and the carriers of virtual ones. */
final class HeadwaterV1Threads {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long TID = U.objectFieldOffset(Thread.class, "tid");
    private static final long NAME = U.objectFieldOffset(Thread.class, "name");
    private static final Class<?> VIRTUAL_THREAD = jdkClass("java.lang.VirtualThread");
    /**
     * Where a virtual thread has its carrier. The name is read on every JDK: who has C2 compile a method allocates those string constants of
     * its class that have not been read by then, and that would be the program.
     */
    private static final long CARRIER = field(VIRTUAL_THREAD, "carrierThread");
    /** Stands for threads that have no state: never inside, handed nothing, and long dead. The number is no thread's. */
    static final HeadwaterV1Thread NOBODY = nobody();
    private static final HeadwaterV1Thread[] NO_THREADS = {NOBODY};

    /** Open-addressing table by thread id, a power of two long, at most half full; the rest is {@link #NOBODY}. */
    private static HeadwaterV1Thread[] threads = NO_THREADS;
    static int count;
    /**
     * The thread that took a chunk last: for it {@link #current} need not look into the table. Every thread's probes read this, so it
     * is nowhere near what is written in an event; the thread's state is.
     */
    private static Thread latestOwner;
    /** Its state, or {@link #NOBODY}. */
    private static HeadwaterV1Thread latest = NOBODY;
    /** Those that were in the call graph when recording ended. */
    private static HeadwaterV1Thread[] overtaken = NO_THREADS;
    /** The latest run of any virtual thread that was dropped from the table: it goes on counting from there. */
    private static int forgottenRun;

    private HeadwaterV1Threads() {}

    private static HeadwaterV1Thread nobody() {
        HeadwaterV1Thread nobody = new HeadwaterV1Thread(0, false);
        nobody.dead = true;
        return nobody;
    }

    /** The current thread's state; {@code null} if it has none. */
    static HeadwaterV1Thread current() {
        return orNull(currentOrNobody());
    }

    private static HeadwaterV1Thread orNull(HeadwaterV1Thread thread) {
        return thread == NOBODY ? null : thread;
    }

    /**
     * The current thread's state, or {@link #NOBODY}. Its number, the table and what is found there are loads of which each must wait
     * for the one before, and the clock for all of them; where one thread does most of the work it is half as many.
     */
    @ForceInline
    static HeadwaterV1Thread currentOrNobody() {
        Thread self = Thread.currentThread();
        if (latestOwner == self) {
            HeadwaterV1Thread thread = latest;
            // The two are not written at once.
            if (thread.owner == self) {
                return thread;
            }
        }
        return findOrNobody(U.getLong(self, TID));
    }

    /** The current thread, which is not virtual, has taken a chunk. */
    static void tookChunk(HeadwaterV1Thread thread) {
        if (thread.owner == null) {
            synchronized (HeadwaterV1.LOCK) {
                if (!HeadwaterV1.recording || find(thread.tid) != thread) {
                    // A late writer.
                    return;
                }
                thread.owner = Thread.currentThread();
            }
        }
        use(thread);
    }

    /** Lets {@link #current} find the state of its owner fast. Threads race here; the others are found by the table. */
    static void use(HeadwaterV1Thread thread) {
        if (latest != thread || latestOwner != thread.owner) {
            latest = thread;
            latestOwner = thread.owner;
        }
    }

    private static void forgetLatest() {
        latestOwner = null;
        latest = NOBODY;
    }

    /** A thread's state; {@code null} if it has none. */
    static HeadwaterV1Thread find(long tid) {
        return orNull(findOrNobody(tid));
    }

    /**
     * Inlined also where most calls are the latest thread's: for the others, a call would be most of what a probe costs.
     *
     * <p>No place is empty, so that each of the two conditions is met often or never: where a condition was seldom come to, the compiler
     * knows nothing of it, and has all that a loop keeps in registers saved for the call behind it.
     */
    @ForceInline
    private static HeadwaterV1Thread findOrNobody(long tid) {
        HeadwaterV1Thread[] table = threads;
        HeadwaterV1Thread thread = table[(int) tid & table.length - 1];
        if (thread.tid == tid) {
            return thread;
        }
        return thread.displaced != 0 ? findBehind(table, tid) : NOBODY;
    }

    /** Apart, because a loop in a probe is more code than all the rest of it. */
    @DontInline
    private static HeadwaterV1Thread findBehind(HeadwaterV1Thread[] table, long tid) {
        int mask = table.length - 1;
        int step = step(tid);
        for (int at = (int) tid + step & mask;; at = at + step & mask) {
            HeadwaterV1Thread thread = table[at];
            if (thread == NOBODY || thread.tid == tid) {
                return thread;
            }
        }
    }

    /**
     * How far a thread that does not find its place free goes on at a time; odd, so that it comes to all. Each has its own: numbers are
     * given in a row, and where a row begins in another's place, each would have to go behind all of that.
     */
    private static int step(long tid) {
        return (int) (tid * 0x9E3779B97F4A7C15L >>> 33) | 1;
    }

    /** Number of the current thread. */
    static long currentTid() {
        return U.getLong(Thread.currentThread(), TID);
    }

    /** Forgets all threads. Calls that they are in keep their state as a token, by which they find out that it is too late. */
    static void clear() {
        for (HeadwaterV1Thread thread : threads) {
            if (thread != NOBODY) {
                thread.owner = null;
                thread.source = HeadwaterV1Clock.LATE;
            }
        }
        forgetLatest();
        threads = NO_THREADS;
        overtaken = NO_THREADS;
        count = 0;
    }

    /** Counts what threads have not told that they lost, and forgets them, but for being inside. */
    static void close() {
        HeadwaterV1Thread[] all = threads;
        for (HeadwaterV1Thread thread : all) {
            if (thread != NOBODY && !thread.virtual) {
                HeadwaterV1Chunks.countLost(thread);
            }
        }
        clear();
        overtaken = insideOf(all);
    }

    private static HeadwaterV1Thread[] insideOf(HeadwaterV1Thread[] all) {
        // Some come out meanwhile; none goes in, of those whose states these are.
        HeadwaterV1Thread[] found;
        try {
            found = nobodies((int) inside(all));
        } catch (OutOfMemoryError e) {
            return NO_THREADS;
        }
        int at = 0;
        for (HeadwaterV1Thread thread : all) {
            if (at < found.length && isInside(thread)) {
                found[at++] = thread;
            }
        }
        return found;
    }

    /** How many threads are in the call graph, but for virtual ones. */
    static long inside() {
        return inside(overtaken) + inside(threads);
    }

    private static long inside(HeadwaterV1Thread[] among) {
        long inside = 0;
        for (HeadwaterV1Thread thread : among) {
            if (isInside(thread)) {
                inside++;
            }
        }
        return inside;
    }

    private static boolean isInside(HeadwaterV1Thread thread) {
        return !thread.virtual && !thread.calibrates && !thread.dead && thread.depth != 0;
    }

    /** Whether a thread has been in the call graph since before recording ended. */
    private static boolean isOvertaken(long tid) {
        for (HeadwaterV1Thread thread : overtaken) {
            if (isInside(thread) && thread.tid == tid) {
                return true;
            }
        }
        return false;
    }

    /**
     * The state of a thread that enters the call graph for the first time, or again after it was given up for dead; one that records
     * nothing, if recording has ended. {@code null} if the thread is not to be known.
     */
    static HeadwaterV1Thread register() {
        Thread self = Thread.currentThread();
        long tid = U.getLong(self, TID);
        HeadwaterV1Thread thread;
        synchronized (HeadwaterV1.LOCK) {
            boolean recording = HeadwaterV1.recording;
            if (!recording && (!HeadwaterV1.watching || isVirtual(self) || isOvertaken(tid))) {
                return null;
            }
            thread = current();
            if (thread != null) {
                thread.dead = false;
                return thread;
            }
            try {
                thread = HeadwaterV1Thread.ofProgram(tid, isVirtual(self));
                thread.run = forgottenRun;
                if (!recording) {
                    thread.source = HeadwaterV1Clock.LATE;
                }
                insert(thread);
            } catch (OutOfMemoryError e) {
                // The program's to meet, not ours to throw.
                return null;
            }
            if (!recording) {
                return thread;
            }
        }
        tell(thread);
        return thread;
    }

    /** Tells the tool of the current thread. */
    static void tell(HeadwaterV1Thread thread) {
        Thread self = Thread.currentThread();
        // Without a name there is nothing to tell of a virtual thread, and there may be very many.
        if (!thread.virtual || U.getReference(self, NAME) != "") {
            HeadwaterV1.started(self, thread.tid, thread.virtual);
        }
    }

    /**
     * A thread is about to be started inside the call graph.
     *
     * @return whether it will be followed
     */
    static boolean expect(Thread started, long link) {
        long tid = U.getLong(started, TID);
        synchronized (HeadwaterV1.LOCK) {
            if (!HeadwaterV1.recording || find(tid) != null) {
                return false;
            }
            try {
                HeadwaterV1Thread thread = HeadwaterV1Thread.ofProgram(tid, isVirtual(started));
                thread.run = forgottenRun;
                thread.setHanded(true);
                thread.startedBy = link;
                insert(thread);
                return true;
            } catch (OutOfMemoryError e) {
                // The program's to meet, not ours to throw.
                return false;
            }
        }
    }

    private static boolean isVirtual(Thread thread) {
        return VIRTUAL_THREAD != null && VIRTUAL_THREAD.isInstance(thread);
    }

    /** What a virtual thread, the current one, runs on. */
    static Thread carrierOf(Thread virtual) {
        return (Thread) U.getReference(virtual, CARRIER);
    }

    /** Whose chunk the current thread, which is virtual, writes into; {@code null} if there is none. */
    static HeadwaterV1Thread carrier() {
        for (;;) {
            Thread on = carrierOf(Thread.currentThread());
            if (on == null) {
                return null;
            }
            // The carrier may have calls of its own in the call graph: those are under its own number.
            long key = ~U.getLong(on, TID);
            HeadwaterV1Thread carrier = find(key);
            if (carrier != null) {
                if (carrier.told == 0) {
                    carrier.told = 1;
                    HeadwaterV1.started(on, key, false);
                }
                return carrier;
            }
            synchronized (HeadwaterV1.LOCK) {
                if (!HeadwaterV1.recording) {
                    return null;
                }
                try {
                    if (find(key) == null) {
                        insert(new HeadwaterV1Thread(key, false));
                    }
                } catch (OutOfMemoryError e) {
                    return null;
                }
            }
            // Waiting for the lock, it may have changed its carrier.
        }
    }

    static void insert(HeadwaterV1Thread thread) {
        HeadwaterV1Thread[] table = threads;
        if ((count + 1) * 2 > table.length) {
            int alive = 1;
            for (HeadwaterV1Thread other : table) {
                if (!other.dead) {
                    alive++;
                }
            }
            int length = 64;
            while (length < alive * 3) {
                length *= 2;
            }
            HeadwaterV1Thread[] larger = nobodies(length);
            count = 0;
            for (HeadwaterV1Thread other : table) {
                if (other == NOBODY) {
                    continue;
                }
                if (!other.dead) {
                    put(larger, other);
                    continue;
                }
                // It would not be found when recording ends.
                other.source = HeadwaterV1Clock.LATE;
                if (other.run > forgottenRun) {
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

    private static HeadwaterV1Thread[] nobodies(int length) {
        HeadwaterV1Thread[] table = new HeadwaterV1Thread[length];
        for (int i = 0; i < length; i++) {
            table[i] = NOBODY;
        }
        return table;
    }

    private static void put(HeadwaterV1Thread[] table, HeadwaterV1Thread thread) {
        int at = (int) thread.tid & table.length - 1;
        if (table[at] != NOBODY) {
            // Whoever looks for the thread must look behind this one.
            table[at].displaced++;
        }
        int step = step(thread.tid);
        while (table[at] != NOBODY) {
            at = at + step & table.length - 1;
        }
        table[at] = thread;
        count++;
    }

    /** Has the threads that read their times from one source read them from another, but for carriers. The lock is held. */
    static void restamp(int from, int to) {
        for (HeadwaterV1Thread thread : threads) {
            if (thread != NOBODY && thread.tid >= 0 && thread.source == from) {
                thread.source = to;
            }
        }
    }

    /** How many threads have a state, but for the one that calibrated; carriers of virtual ones have their own. */
    static long known() {
        long known = 0;
        for (HeadwaterV1Thread thread : threads) {
            if (thread != NOBODY && !thread.calibrates) {
                known++;
            }
        }
        return known;
    }

    /** The current thread is about to end. */
    static void end() {
        long tid = currentTid();
        HeadwaterV1Thread thread = find(tid);
        if (thread != null && HeadwaterV1.recording) {
            HeadwaterV1Handover.endThread(thread);
        }
        end(thread);
        end(find(~tid));
    }

    private static void end(HeadwaterV1Thread thread) {
        if (thread != null) {
            HeadwaterV1Chunks.release(thread);
            thread.owner = null;
            if (latest == thread) {
                // The thread itself is not to be kept, nor what it refers to.
                forgetLatest();
            }
            thread.dead = true;
        }
    }

    /** A class of the JDK's; {@code null} where this JDK has none of that name. */
    static Class<?> jdkClass(String name) {
        try {
            return Class.forName(name, false, null);
        } catch (ClassNotFoundException none) {
            return null;
        }
    }

    /** Where objects of a class have a field; negative if there is no such class, or no field of that name. */
    static long field(Class<?> owner, String name) {
        try {
            return owner == null ? -1 : U.objectFieldOffset(owner, name);
        } catch (InternalError none) {
            return -1;
        }
    }
}
