package java.lang;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;

/**
 * The processor's time stamp counter, read by a call of a function of the agent's that is no more than a call: {@code java.lang.foreign}'s
 * critical downcall, which is a preview called trivial in JDK 21, and what JDK 17 has in its place. C2 inlines it; the interpreter and C1
 * go through the same handle, so that all see one time.
 *
 * <p>Initialised only when the counter is to be used, after {@link HeadwaterV1Clock#tscFunction} was set. Reflection, because the
 * class is compiled for JDK 11.
 */
final class HeadwaterV1Tsc {
    private static final int FIRST_WITH_LINKER = 21;
    private static final int FIRST_WITH_CRITICAL = 22;
    // How JDK 17 numbers what it passes addresses and results in.
    private static final int INTEGER_REGISTER = 0;
    private static final int R10 = 10;
    private static final int RAX = 0;

    private static final MethodHandle READ = reader(HeadwaterV1Clock.tscFunction);

    private HeadwaterV1Tsc() {}

    /** The only call site: once it has run often enough, nothing is left to be linked, spun or customised in a probe. */
    static long read() {
        try {
            return (long) READ.invokeExact();
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new InternalError(e);
        }
    }

    private static MethodHandle reader(long function) {
        try {
            int feature = Runtime.version().feature();
            return feature < FIRST_WITH_LINKER ? byEntryPoint(function) : byLinker(function, feature);
        } catch (ReflectiveOperationException e) {
            throw new UnsupportedOperationException(e);
        }
    }

    /** By {@code Linker.Option.critical}, or {@code isTrivial} as that was called first. */
    private static MethodHandle byLinker(long function, int feature) throws ReflectiveOperationException {
        Class<?> linkers = Class.forName("java.lang.foreign.Linker");
        Class<?> options = Class.forName("java.lang.foreign.Linker$Option");
        Class<?> segments = Class.forName("java.lang.foreign.MemorySegment");
        Class<?> layouts = Class.forName("java.lang.foreign.MemoryLayout");
        Class<?> descriptors = Class.forName("java.lang.foreign.FunctionDescriptor");
        Object linker = linkers.getMethod("nativeLinker").invoke(null);
        Object critical = feature < FIRST_WITH_CRITICAL
                ? options.getMethod("isTrivial").invoke(null)
                : options.getMethod("critical", boolean.class).invoke(null, false);
        Object longLayout = Class.forName("java.lang.foreign.ValueLayout").getField("JAVA_LONG").get(null);
        Object noLayouts = Array.newInstance(layouts, 0);
        Object descriptor = descriptors.getMethod("of", layouts, noLayouts.getClass()).invoke(null, longLayout, noLayouts);
        Object symbol = segments.getMethod("ofAddress", long.class).invoke(null, function);
        Object chosen = Array.newInstance(options, 1);
        Array.set(chosen, 0, critical);
        Method downcall = linkers.getMethod("downcallHandle", segments, descriptors, chosen.getClass());
        MethodHandle handle = (MethodHandle) downcall.invoke(linker, symbol, descriptor, chosen);
        return handle.asType(MethodType.methodType(long.class));
    }

    /**
     * By a native entry point without a transition of the thread's state, as the incubating linker of JDK 17 made them for functions
     * with the attribute {@code abi/trivial}. That is C2's alone; whoever does not know it calls {@link #readNatively}.
     */
    private static MethodHandle byEntryPoint(long function) throws ReflectiveOperationException {
        Class<?> entryPoints = Class.forName("jdk.internal.invoke.NativeEntryPoint");
        Method register = entryPoints.getDeclaredMethod("vmStorageToVMReg", int.class, int.class);
        register.setAccessible(true);
        long[] address = {(long) register.invoke(null, INTEGER_REGISTER, R10)};
        long[] result = {(long) register.invoke(null, INTEGER_REGISTER, RAX)};
        MethodType type = MethodType.methodType(long.class, long.class);
        Constructor<?> constructor = entryPoints.getDeclaredConstructor(
                int.class, long[].class, long[].class, boolean.class, MethodType.class, String.class);
        constructor.setAccessible(true);
        Object entryPoint = constructor.newInstance(0, address, result, false, type, "time stamp counter");
        MethodHandle natively = MethodHandles.lookup().findStatic(HeadwaterV1Tsc.class, "readNatively", type);
        Method make = Class.forName("java.lang.invoke.NativeMethodHandle")
                .getDeclaredMethod("make", entryPoints, MethodHandle.class);
        make.setAccessible(true);
        return MethodHandles.insertArguments((MethodHandle) make.invoke(null, entryPoint, natively), 0, function);
    }

    private static long readNatively(long function) {
        return HeadwaterV1.readTsc();
    }
}
