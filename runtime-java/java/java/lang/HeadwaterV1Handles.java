package java.lang;

import java.lang.invoke.MethodType;
import java.lang.reflect.Member;
import jdk.internal.misc.Unsafe;

/**
 * What direct method handles stand for. Every method handle that runs a method comes to a direct one, and that to its
 * {@code MemberName}, whose fields are read here: the JDK has no other way to them that could not be instrumented itself.
 */
final class HeadwaterV1Handles {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long MEMBER = offset("java.lang.invoke.DirectMethodHandle", "member");
    private static final long INIT_METHOD = offset("java.lang.invoke.DirectMethodHandle$Constructor", "initMethod");
    private static final long OWNER = offset("java.lang.invoke.MemberName", "clazz");
    private static final long TYPE = offset("java.lang.invoke.MemberName", "type");
    private static final long METHOD = offset("java.lang.invoke.MemberName", "method");
    private static final long LOADER = offset("java.lang.Class", "classLoader");
    /** The fields are what they should be. */
    private static final boolean READABLE = MEMBER != 0 && INIT_METHOD != 0 && OWNER != 0 && TYPE != 0 && METHOD != 0
            && LOADER != 0;

    private HeadwaterV1Handles() {}

    private static long offset(String owner, String field) {
        try {
            return U.objectFieldOffset(Class.forName(owner, false, null), field);
        } catch (ReflectiveOperationException | LinkageError none) {
            return 0;
        }
    }

    /**
     * The JVM's own object for the method behind a handle: there is one for each method. Null if nobody wants to know of that method.
     * Reads fields, and calls nothing: the handle may be one that reads the clock for a probe.
     */
    static Object method(Object handle, int kind) {
        if (!READABLE) {
            return null;
        }
        Object member = member(handle, kind);
        Object owner = U.getReference(member, OWNER);
        boolean concerns = (kind & HeadwaterV1.OF_JDK_TOO) != 0 || U.getReference(owner, LOADER) != null;
        return concerns ? U.getReference(member, METHOD) : null;
    }

    /** Tells of the method behind a handle. */
    static void reveal(Object handle, int kind) {
        Object member = member(handle, kind);
        String name = ((Member) member).getName();
        // The name's having been asked for, the type is there: in one of three forms.
        Object type = U.getReference(member, TYPE);
        if (type instanceof Object[]) {
            Object[] parts = (Object[]) type;
            type = MethodType.methodType((Class<?>) parts[0], (Class<?>[]) parts[1]);
        }
        String descriptor = type instanceof MethodType ? ((MethodType) type).toMethodDescriptorString() : (String) type;
        if (name != null && descriptor != null) {
            HeadwaterV1.revealHandle((Class<?>) U.getReference(member, OWNER), name, descriptor);
        }
    }

    private static Object member(Object handle, int kind) {
        return U.getReference(handle, (kind & HeadwaterV1.OF_CONSTRUCTOR) != 0 ? INIT_METHOD : MEMBER);
    }
}
