package java.lang;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * The classes on whose objects a virtual call was made in this session, of calls that are told what they are made on.
 *
 * <p>Such a call may be anywhere in the program's hottest code. Most are made on objects of one or two classes, which are two
 * comparisons; what is inlined for that is little.
 */
final class HeadwaterV1Receivers {
    /** So many calls can be told. */
    private static final int CALLS = 2048;
    private static final int FIRST_TABLE = 8;
    /** Pairs of a call and a class that are remembered: after so many all are forgotten, because of the heap that they take. */
    private static final int MOST_PAIRS = 4000;
    /** Nanoseconds after which, at the next class, all are forgotten and asked for again: some may be kept loaded by this alone. */
    private static final long LONGEST_KEPT = 60_000_000_000L;
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final HeadwaterV1Receivers NONE = new HeadwaterV1Receivers();
    private static final HeadwaterV1Receivers[] SEEN = new HeadwaterV1Receivers[CALLS];

    /** When all were forgotten. */
    private static long cleared;
    /** How many pairs of a call and a class there are since. */
    private static int pairs;

    private Class<?> first;
    private Class<?> second;
    /** The others: an open-addressing table, at most half full; {@code null} without any. */
    private Class<?>[] others;
    private int count;

    private HeadwaterV1Receivers() {}

    /** A call inside the call graph, perhaps, is about to be made on an object. */
    @ForceInline
    static void receive(Object receiver, int call) {
        if (receiver != null) {
            Class<?> type = receiver.getClass();
            HeadwaterV1Receivers seen = SEEN[call];
            if (seen.first != type && seen.second != type) {
                receiveOther(seen, type, call);
            }
        }
    }

    @DontInline
    private static void receiveOther(HeadwaterV1Receivers seen, Class<?> type, int call) {
        if (HeadwaterV1.recording && !seen.contains(type)) {
            HeadwaterV1Revealed.receive(type, call);
        }
    }

    /** Whether a call has been made on objects of a class. */
    static boolean contains(Class<?> type, int call) {
        return SEEN[call].contains(type);
    }

    private boolean contains(Class<?> type) {
        if (first == type || second == type) {
            return true;
        }
        Class<?>[] table = others;
        if (table == null) {
            return false;
        }
        int at = System.identityHashCode(type) & table.length - 1;
        while (table[at] != type) {
            if (table[at] == null) {
                return false;
            }
            at = at + 1 & table.length - 1;
        }
        return true;
    }

    /** It has. */
    static void add(Class<?> type, int call) {
        synchronized (HeadwaterV1.LOCK) {
            if (!HeadwaterV1.recording || contains(type, call)) {
                return;
            }
            if (++pairs > MOST_PAIRS || System.nanoTime() - cleared > LONGEST_KEPT) {
                clear();
            }
            HeadwaterV1Receivers seen = SEEN[call];
            if (seen == NONE) {
                seen = new HeadwaterV1Receivers();
                seen.first = type;
                U.storeFence();
                SEEN[call] = seen;
            } else if (seen.second == null) {
                seen.second = type;
            } else {
                seen.addOther(type);
            }
        }
    }

    private void addOther(Class<?> type) {
        Class<?>[] table = others;
        if (table == null || (count + 1) * 2 > table.length) {
            Class<?>[] larger = new Class<?>[table == null ? FIRST_TABLE : table.length * 2];
            if (table != null) {
                for (Class<?> other : table) {
                    if (other != null) {
                        put(larger, other);
                    }
                }
            }
            put(larger, type);
            // The classes are there for whoever sees the new table.
            U.storeFence();
            others = larger;
        } else {
            put(table, type);
        }
        count++;
    }

    private static void put(Class<?>[] table, Class<?> type) {
        int at = System.identityHashCode(type) & table.length - 1;
        while (table[at] != null) {
            at = at + 1 & table.length - 1;
        }
        table[at] = type;
    }

    /** Forgets it all: classes are not to be kept loaded on our account. */
    static void clear() {
        cleared = System.nanoTime();
        pairs = 0;
        for (int call = 0; call < CALLS; call++) {
            SEEN[call] = NONE;
        }
    }

    static {
        clear();
    }
}
