package java.lang;

import static java.lang.HeadwaterV1.ID_SHIFT;
import static java.lang.HeadwaterV1.KIND_PAUSE;
import static java.lang.HeadwaterV1.KIND_SHIFT;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;

/**
 * Objects that instrumented methods make: a word for each, with its site and its size. No object is passed to a probe, so the compiler may still do
 * without it.
 */
final class HeadwaterV1Sites {
    // As the crate headwater-protocol has them; a test compares.
    private static final int COUNTER_OBJECTS = 52;
    private static final int COUNTER_OBJECT_BYTES = 53;
    private static final int SITE_BITS = 20;
    private static final int SIZE_BITS = 21;
    /** Sizes are in units of eight bytes. */
    private static final int UNIT_SHIFT = 3;

    private static final long OBJECT = KIND_PAUSE << KIND_SHIFT | (long) COUNTER_OBJECTS << ID_SHIFT;
    private static final long MAX_SIZE = (1L << SIZE_BITS) - 1;
    /** Bytes: HotSpot's -XX:ObjectAlignmentInBytes. */
    private static final int LARGEST_ALIGNMENT = 256;
    // Types of elements, as the instruction newarray has them. References have 0.
    private static final int BOOLEAN = 4;
    private static final int CHAR = 5;
    private static final int FLOAT = 6;
    private static final int DOUBLE = 7;
    static final int BYTE = 8;
    private static final int SHORT = 9;
    private static final int INT = 10;
    private static final int LONG = 11;
    private static final int TYPES = 12;
    private static final int TYPE_BITS = 4;

    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long[] NONE = {};
    /** By type, where elements begin in an array. */
    private static final int[] BASES = new int[TYPES];
    /** By type, the size of an element, as a power of two. */
    private static final int[] SHIFTS = new int[TYPES];

    /** The alignment of objects, less one. */
    private static int mask;
    /** By site, the word of an object of its class; 0 where it is not known yet. There are none while objects are not counted. */
    private static long[] words = NONE;

    private HeadwaterV1Sites() {}

    static boolean areCounted() {
        return words != NONE;
    }

    /**
     * From now on sites tell. How the JVM lays out arrays it says by how large short ones are; whether that is understood, by how large others are.
     *
     * @return the alignment of objects, in bytes; 0 if arrays are not as large as expected
     */
    static int begin() {
        int fit = fitting(BYTE, LARGEST_ALIGNMENT);
        long alignment = size(BYTE, fit + 1) - size(BYTE, 0);
        if (alignment < 1 << UNIT_SHIFT || alignment > LARGEST_ALIGNMENT || (alignment & alignment - 1) != 0) {
            return 0;
        }
        mask = (int) alignment - 1;
        for (int type = 0; type < TYPES; type++) {
            if ((type == 0 || type >= BOOLEAN) && !measure(type)) {
                return 0;
            }
        }
        long[] unknown = new long[1024];
        U.storeFence();
        words = unknown;
        return (int) alignment;
    }

    /** No site tells any more, or in a new session none yet. */
    static void end() {
        words = NONE;
    }

    /** Finds out how arrays of a type are laid out; whether that is so for some of other lengths. */
    private static boolean measure(int type) {
        final int many = 1024;
        long element = (size(type, 2 * many) - size(type, many)) / many;
        int shift = 0;
        while (1 << shift < element) {
            shift++;
        }
        SHIFTS[type] = shift;
        BASES[type] = (int) (size(type, 0) - ((long) fitting(type, LARGEST_ALIGNMENT) << shift));
        for (int length = 0; length < many; length = 2 * length + 1) {
            if (units(length, type) << UNIT_SHIFT != size(type, length)) {
                return false;
            }
        }
        return true;
    }

    /** How many elements an array has room for that is as large as an empty one; as far as that is looked for. */
    private static int fitting(int type, int most) {
        long empty = size(type, 0);
        int fit = 0;
        while (fit < most && size(type, fit + 1) == empty) {
            fit++;
        }
        return fit;
    }

    /** What the JVM says. */
    private static long size(int type, int length) {
        return HeadwaterV1.objectSize(array(type, length));
    }

    private static Object array(int type, int length) {
        switch (type) {
            case BOOLEAN:
                return new boolean[length];
            case CHAR:
                return new char[length];
            case FLOAT:
                return new float[length];
            case DOUBLE:
                return new double[length];
            case BYTE:
                return new byte[length];
            case SHORT:
                return new short[length];
            case INT:
                return new int[length];
            case LONG:
                return new long[length];
            default:
                return new Object[length];
        }
    }

    /** An object of a class has been made. */
    static void object(HeadwaterV1Thread thread, Class<?> type, int site) {
        long[] known = words;
        if (known == NONE) {
            return;
        }
        long word = site < known.length ? known[site] : 0;
        if (word != 0 && mayAppend(thread)) {
            HeadwaterV1Chunks.append(thread, word);
        } else {
            objectElse(thread, type, site, word);
        }
    }

    /** An array has been made. */
    static void array(HeadwaterV1Thread thread, int length, int type, int site) {
        if (words == NONE) {
            return;
        }
        long units = units(length, type);
        if (units <= MAX_SIZE && mayAppend(thread)) {
            HeadwaterV1Chunks.append(thread, OBJECT | units << SITE_BITS | site);
        } else {
            tell(thread, units, site);
        }
    }

    /** An array has been made with arrays in it. Those of a dimension have one length, and the site behind that of the dimension before. */
    @DontInline
    static void arrays(HeadwaterV1Thread thread, Object array, int dimensions, int site) {
        long times = 1;
        for (int dimension = 0;; dimension++) {
            long shape = shape(array);
            int length = (int) (shape >>> TYPE_BITS);
            for (long i = 0; i < times; i++) {
                array(thread, length, (int) shape & (1 << TYPE_BITS) - 1, site + dimension);
            }
            if (dimension + 1 == dimensions || length == 0) {
                return;
            }
            times *= length;
            array = ((Object[]) array)[0];
        }
    }

    /** An array's length, and in the lower bits its elements' type. */
    private static long shape(Object array) {
        if (array instanceof Object[]) {
            return (long) ((Object[]) array).length << TYPE_BITS;
        }
        if (array instanceof boolean[]) {
            return (long) ((boolean[]) array).length << TYPE_BITS | BOOLEAN;
        }
        if (array instanceof char[]) {
            return (long) ((char[]) array).length << TYPE_BITS | CHAR;
        }
        if (array instanceof float[]) {
            return (long) ((float[]) array).length << TYPE_BITS | FLOAT;
        }
        if (array instanceof double[]) {
            return (long) ((double[]) array).length << TYPE_BITS | DOUBLE;
        }
        if (array instanceof byte[]) {
            return (long) ((byte[]) array).length << TYPE_BITS | BYTE;
        }
        if (array instanceof short[]) {
            return (long) ((short[]) array).length << TYPE_BITS | SHORT;
        }
        if (array instanceof int[]) {
            return (long) ((int[]) array).length << TYPE_BITS | INT;
        }
        return (long) ((long[]) array).length << TYPE_BITS | LONG;
    }

    private static long units(int length, int type) {
        return (BASES[type] + ((long) length << SHIFTS[type]) + mask & ~(long) mask) >>> UNIT_SHIFT;
    }

    /** Whether a word may be stored at once, one that is not counted if it is lost. */
    private static boolean mayAppend(HeadwaterV1Thread thread) {
        return thread.position < thread.end && thread.head != 0 && !HeadwaterV1Chunks.isLate(thread);
    }

    @DontInline
    private static void objectElse(HeadwaterV1Thread thread, Class<?> type, int site, long word) {
        try {
            tell(thread, (word != 0 ? word : ask(thread, type, site)) >>> SITE_BITS & MAX_SIZE, site);
        } catch (StackOverflowError ignored) {
            // The program has an object that is not counted.
        }
    }

    @DontInline
    private static void tell(HeadwaterV1Thread thread, long units, int site) {
        try {
            boolean counted = thread.source == HeadwaterV1Clock.COUNTED;
            if (counted) {
                // What was counted is told with the objects that it was for, also by a thread that stays in a method.
                HeadwaterV1Counters.tell(thread);
            }
            HeadwaterV1Chunks.note(thread, COUNTER_OBJECTS, (units & MAX_SIZE) << SITE_BITS | site);
            if (units > MAX_SIZE) {
                HeadwaterV1Chunks.note(thread, COUNTER_OBJECT_BYTES, units >>> SIZE_BITS << SITE_BITS | site);
            }
            if (counted) {
                HeadwaterV1Counters.goOn(thread);
            }
        } catch (StackOverflowError ignored) {
            // As above.
        }
    }

    /**
     * Has the JVM say how large an object of a class is: one that nobody constructs, and nobody else gets.
     *
     * @param type {@code null} in class files that are too old to name classes
     * @return the word of such an object, with no size if that cannot be had
     */
    private static long ask(HeadwaterV1Thread thread, Class<?> type, int site) {
        long word = OBJECT | site;
        if (type == null) {
            return word;
        }
        HeadwaterV1Counters.mark(thread);
        int depth = thread.depth;
        thread.depth = -depth;
        try {
            long size = HeadwaterV1.objectSize(U.allocateInstance(type));
            if (size != 0) {
                word |= size >>> UNIT_SHIFT << SITE_BITS;
                remember(site, word);
            }
        } catch (InstantiationException | OutOfMemoryError e) {
            // The next one asks again.
        } finally {
            thread.depth = depth;
        }
        HeadwaterV1Counters.skip(thread);
        return word;
    }

    private static void remember(int site, long word) {
        synchronized (HeadwaterV1.LOCK) {
            long[] known = words;
            if (!HeadwaterV1.recording || known == NONE) {
                // The numbers may be those of other sites by now; or nobody wants to know any more.
                return;
            }
            if (site >= known.length) {
                int length = known.length + 1;
                while (length <= site) {
                    length *= 2;
                }
                long[] more = new long[length];
                System.arraycopy(known, 0, more, 0, known.length);
                known = more;
            }
            known[site] = word;
            // Whoever sees the array sees what is in it.
            U.storeFence();
            words = known;
        }
    }
}
