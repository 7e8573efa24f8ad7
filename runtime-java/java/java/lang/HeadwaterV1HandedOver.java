package java.lang;

import java.lang.ref.WeakReference;
import jdk.internal.misc.Unsafe;

/**
 * Work that is handed from thread to thread: under which number each object was handed over, from inside the call graph, that has not
 * been run yet.
 *
 * <p>The same object may be handed over many times before it is run once, by threads inside and outside: it is in here as often,
 * and whoever runs it takes the first of these. So what is counted is exact, whichever of them is which.
 *
 * <p>Objects are held weakly: what is never run leaves with its object. There is no lock: a bucket is a list that never changes, and is
 * replaced as a whole.
 */
final class HeadwaterV1HandedOver {
    /** Of an object that is not in here. */
    static final long NONE = -1;
    /** Of an object that was handed over from outside the call graph. */
    static final long OUTSIDE = 0;
    /** A power of two. */
    private static final int BUCKETS = 1 << 14;
    /** More objects of one bucket than this are not remembered: together some million. */
    private static final int LONGEST = 64;

    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long FIRST = U.objectFieldOffset(HeadwaterV1Bucket.class, "first");
    /** Address of the latest number. */
    private static final long LATEST = U.allocateMemory(8);

    /** {@code null} until something is handed over in this session. */
    private static volatile HeadwaterV1Bucket[] buckets;

    static {
        U.putLong(LATEST, 0);
    }

    private HeadwaterV1HandedOver() {}

    static void clear() {
        buckets = null;
    }

    /** A number that no other work in this JVM has had: 1, or more. */
    static long number() {
        return (U.getAndAddLong(null, LATEST, 1) + 1) & HeadwaterV1.MAX_PAYLOAD;
    }

    static boolean contains(Object object) {
        return find(object) != null;
    }

    /** Whether an object is in here to be handed over once more. */
    static boolean isStage(Object object) {
        HeadwaterV1Entry entry = find(object);
        return entry != null && entry.stage;
    }

    private static HeadwaterV1Entry find(Object object) {
        HeadwaterV1Bucket[] table = buckets;
        if (table == null) {
            return null;
        }
        HeadwaterV1Entry entry = table[place(object)].first;
        while (entry != null && entry.object.get() != object) {
            entry = entry.next;
        }
        return entry;
    }

    /**
     * Remembers an object.
     *
     * @return whether there was room
     */
    static boolean put(Object object, long link, boolean stage) {
        HeadwaterV1Bucket[] table = table();
        if (table == null) {
            return false;
        }
        HeadwaterV1Bucket bucket = table[place(object)];
        WeakReference<Object> reference = new WeakReference<>(object);
        for (;;) {
            HeadwaterV1Entry first = bucket.first;
            HeadwaterV1Entry alive = without(first, null);
            int length = 0;
            for (HeadwaterV1Entry entry = alive; entry != null; entry = entry.next) {
                length++;
            }
            if (length >= LONGEST) {
                return false;
            }
            if (U.compareAndSetReference(bucket, FIRST, first, new HeadwaterV1Entry(reference, link, stage, alive))) {
                return true;
            }
        }
    }

    /** Takes an object out. The number under which it was handed over first; or {@link #OUTSIDE}, or {@link #NONE}. */
    static long take(Object object) {
        HeadwaterV1Bucket[] table = buckets;
        if (table == null) {
            return NONE;
        }
        HeadwaterV1Bucket bucket = table[place(object)];
        for (;;) {
            HeadwaterV1Entry first = bucket.first;
            // The last in the list is the first that was put there.
            HeadwaterV1Entry found = null;
            for (HeadwaterV1Entry entry = first; entry != null; entry = entry.next) {
                if (entry.object.get() == object) {
                    found = entry;
                }
            }
            if (found == null) {
                return NONE;
            }
            if (U.compareAndSetReference(bucket, FIRST, first, without(first, found))) {
                return found.link;
            }
        }
    }

    /** A list without one entry, and without those whose objects are gone. */
    private static HeadwaterV1Entry without(HeadwaterV1Entry list, HeadwaterV1Entry removed) {
        boolean changes = false;
        for (HeadwaterV1Entry entry = list; entry != null && !changes; entry = entry.next) {
            changes = entry == removed || entry.object.get() == null;
        }
        if (!changes) {
            return list;
        }
        HeadwaterV1Entry kept = null;
        for (HeadwaterV1Entry entry = list; entry != null; entry = entry.next) {
            if (entry != removed && entry.object.get() != null) {
                kept = new HeadwaterV1Entry(entry.object, entry.link, entry.stage, kept);
            }
        }
        // Copied, it is the other way round.
        HeadwaterV1Entry ordered = null;
        for (; kept != null; kept = kept.next) {
            ordered = new HeadwaterV1Entry(kept.object, kept.link, kept.stage, ordered);
        }
        return ordered;
    }

    private static int place(Object object) {
        int hash = System.identityHashCode(object);
        return (hash ^ hash >>> 14) & BUCKETS - 1;
    }

    private static HeadwaterV1Bucket[] table() {
        HeadwaterV1Bucket[] table = buckets;
        if (table != null) {
            return table;
        }
        synchronized (HeadwaterV1.LOCK) {
            if (buckets == null && HeadwaterV1.recording) {
                HeadwaterV1Bucket[] empty = new HeadwaterV1Bucket[BUCKETS];
                for (int i = 0; i < BUCKETS; i++) {
                    empty[i] = new HeadwaterV1Bucket();
                }
                buckets = empty;
            }
            return buckets;
        }
    }
}
