package java.lang;

import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import jdk.internal.misc.Unsafe;

/** The methods and constructors that were called by reflection or by method handles in this session. */
final class HeadwaterV1Revealed {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long METHOD_SLOT = U.objectFieldOffset(Method.class, "slot");
    private static final long CONSTRUCTOR_SLOT = U.objectFieldOffset(Constructor.class, "slot");

    /**
     * An open-addressing table of owners, at most half full. Its first element has the numbers of their methods (twice the slot; one
     * more for constructors). Methods behind handles are their own owners.
     */
    private static Object[] known = table(64);
    private static int count;

    private HeadwaterV1Revealed() {}

    /** A call inside the call graph is about to be made: what it may run is revealed, unless that was done before. */
    static void call(Object executable, int kind) {
        boolean isHandle = (kind & HeadwaterV1.OF_HANDLE) != 0;
        Object handled = isHandle ? HeadwaterV1Handles.method(executable, kind) : null;
        if (isHandle && handled == null) {
            return;
        }
        revealOnce(executable, handled, kind);
    }

    /** The same of a virtual call, that was not made on objects of a class before. */
    static void receive(Class<?> type, int call) {
        revealOnce(null, type, call);
    }

    /**
     * Reveals what was not, if the thread is in the call graph.
     *
     * @param executable what is called by reflection or by a handle; {@code null} for a virtual call
     * @param handled the method behind a handle, or the class on whose object the call is made; {@code null} for reflection
     * @param kind what kind of object the executable is, or the virtual call's number
     */
    private static void revealOnce(Object executable, Object handled, int kind) {
        HeadwaterV1Thread thread = HeadwaterV1Threads.current();
        if (thread == null) {
            return;
        }
        int depth = thread.depth;
        if (depth > 0 || depth == 0 && (thread.open != null || thread.handed)) {
            long start = 0;
            HeadwaterV1Counters.mark(thread);
            thread.depth = depth > 0 ? -depth : -1;
            try {
                if (executable == null) {
                    Class<?> type = (Class<?>) handled;
                    if (!HeadwaterV1Receivers.contains(type, kind)) {
                        start = HeadwaterV1Clock.stopwatch();
                        HeadwaterV1.revealReceiver(type, kind);
                        HeadwaterV1Receivers.add(type, kind);
                    }
                } else {
                    boolean isHandle = handled != null;
                    Object owner = isHandle ? handled : ((Executable) executable).getDeclaringClass();
                    int slot =
                            isHandle ? 0 : U.getInt(executable, kind == 0 ? METHOD_SLOT : CONSTRUCTOR_SLOT) * 2 + kind;
                    if (!contains(owner, slot)) {
                        start = HeadwaterV1Clock.stopwatch();
                        if (isHandle) {
                            HeadwaterV1Handles.reveal(executable, kind);
                        } else {
                            HeadwaterV1.reveal(executable);
                        }
                        add(owner, slot);
                    }
                }
            } catch (OutOfMemoryError e) {
                // The program's to meet, not ours to throw: it is revealed again the next time.
            } finally {
                thread.depth = depth;
            }
            HeadwaterV1Counters.skip(thread);
            if (start != 0 && depth > 0) {
                HeadwaterV1.pause(thread, HeadwaterV1.PAUSE_HOTSWAP, HeadwaterV1Clock.stopwatch() - start);
            }
        }
    }

    private static boolean contains(Object owner, int slot) {
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

    private static void add(Object owner, int slot) {
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
