package java.lang;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Method;

/**
 * The processor's time stamp counter, read by a critical downcall ({@code java.lang.foreign}, JDK 22 and later) of a function of the
 * agent's library. C2 inlines it to a bare call; the interpreter and C1 go through the same handle, so that all see one time.
 *
 * <p>Initialised only when the counter is to be used, after {@link HeadwaterV1Clock#tscFunction} was set. Reflection, because the
 * class is compiled for JDK 11.
 */
final class HeadwaterV1Tsc {
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
            Class<?> linkers = Class.forName("java.lang.foreign.Linker");
            Class<?> options = Class.forName("java.lang.foreign.Linker$Option");
            Class<?> segments = Class.forName("java.lang.foreign.MemorySegment");
            Class<?> layouts = Class.forName("java.lang.foreign.MemoryLayout");
            Class<?> descriptors = Class.forName("java.lang.foreign.FunctionDescriptor");
            Object linker = linkers.getMethod("nativeLinker").invoke(null);
            Object critical = options.getMethod("critical", boolean.class).invoke(null, false);
            Object longLayout = Class.forName("java.lang.foreign.ValueLayout").getField("JAVA_LONG").get(null);
            Object noLayouts = Array.newInstance(layouts, 0);
            Object descriptor = descriptors.getMethod("of", layouts, noLayouts.getClass()).invoke(null, longLayout, noLayouts);
            Object symbol = segments.getMethod("ofAddress", long.class).invoke(null, function);
            Object chosen = Array.newInstance(options, 1);
            Array.set(chosen, 0, critical);
            Method downcall = linkers.getMethod("downcallHandle", segments, descriptors, chosen.getClass());
            MethodHandle handle = (MethodHandle) downcall.invoke(linker, symbol, descriptor, chosen);
            return handle.asType(MethodType.methodType(long.class));
        } catch (ReflectiveOperationException e) {
            throw new UnsupportedOperationException(e);
        }
    }
}
