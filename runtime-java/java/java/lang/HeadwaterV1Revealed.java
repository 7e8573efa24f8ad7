package java.lang;

import jdk.internal.misc.Unsafe;

/** The methods and constructors that were called by reflection in this session. */
final class HeadwaterV1Revealed {
    private static final Unsafe U = Unsafe.getUnsafe();

    /**
     * What was called by reflection in this session: an open-addressing table of owners, at most half full. Its first element has
     * the numbers of their methods (twice the slot; one more for constructors).
     */
    private static Object[] known = table(64);
    private static int count;

    private HeadwaterV1Revealed() {}

    static boolean contains(Object owner, int slot) {
        Object[] owners = known;
        int[] slots = (int[]) owners[0];
        int mask = slots.length - 1;
        for (int at = System.identityHashCode(owner) * 31 + slot & mask;; at = at + 1 & mask) {
            Object found = owners[at + 1];
            if (found == null || found == owner && slots[at] == slot) {
                return found != null;
            }
        }
    }

    static void add(Object owner, int slot) {
        synchronized (HeadwaterV1.LOCK) {
            if (!HeadwaterV1.recording || contains(owner, slot)) {
                return;
            }
            int[] slots = (int[]) known[0];
            if ((count + 1) * 2 > slots.length) {
                Object[] owners = known;
                Object[] larger = table(slots.length * 2);
                for (int i = 0; i < slots.length; i++) {
                    if (owners[i + 1] != null) {
                        put(larger, owners[i + 1], slots[i]);
                    }
                }
                // The entries are there for whoever sees the new table.
                U.storeFence();
                known = larger;
            }
            put(known, owner, slot);
            count++;
        }
    }

    /** Forgets it all: classes are not to be kept loaded on our account. */
    static void clear() {
        known = table(64);
        count = 0;
    }

    private static void put(Object[] owners, Object owner, int slot) {
        int[] slots = (int[]) owners[0];
        int mask = slots.length - 1;
        int at = System.identityHashCode(owner) * 31 + slot & mask;
        while (owners[at + 1] != null) {
            at = at + 1 & mask;
        }
        slots[at] = slot;
        // Whoever sees the owner sees the slot.
        U.storeFence();
        owners[at + 1] = owner;
    }

    private static Object[] table(int length) {
        Object[] owners = new Object[length + 1];
        owners[0] = new int[length];
        return owners;
    }
}
