import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.invoke.CallSite;
import java.lang.invoke.ConstantCallSite;
import java.lang.invoke.LambdaMetafactory;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandleProxies;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.List;
import java.util.function.IntSupplier;

/** Calls its methods by method handles only, and counts them. Commands on standard input: go, quit. */
public class Handles {
    static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
    static long result;
    /** Made and used before anybody looks. */
    static final MethodHandle EARLY = handle(() -> LOOKUP.findStatic(Handles.class, "early", number()));
    static final MethodHandle EARLY_VIRTUAL =
            handle(() -> LOOKUP.findVirtual(Shape.class, "area", MethodType.methodType(int.class)));
    /** Links to its implementation, which no code names. */
    static final MutableCallSite SITE = new MutableCallSite(number());
    static final IntSupplier PROXY = handle(() -> MethodHandleProxies.asInterfaceInstance(
            IntSupplier.class, LOOKUP.findStatic(Handles.class, "behindProxy", MethodType.methodType(int.class))));

    interface Making<T> {
        T make() throws Throwable;
    }

    static <T> T handle(Making<T> making) {
        try {
            return making.make();
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    static MethodType number() {
        return MethodType.methodType(int.class, int.class);
    }

    public static void main(String[] args) throws Throwable {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SITE.setTarget(LOOKUP.findStatic(Handles.class, "linked", number()));
        result += (int) EARLY.invokeExact(1) + (int) EARLY_VIRTUAL.invokeExact((Shape) new Square());
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            Counter.begin();
            root();
            Counter.end();
            result += (int) EARLY.invokeExact(1);
        }
        Counter.print();
    }

    static void root() throws Throwable {
        Counter.hit("Handles.root()V");
        for (int i = 0; i < 30; i++) {
            result += (int) EARLY.invokeExact(i);
            result += (int) EARLY_VIRTUAL.invoke(i % 2 == 0 ? (Shape) new Square() : new Circle());
            result += (int) SITE.dynamicInvoker().invokeExact(i);
            result += PROXY.getAsInt();
        }
        lookups();
        combined();
        throws_();
        spun();
    }

    static int early(int n) {
        Counter.hit("Handles.early(I)I");
        return below(n);
    }

    static int below(int n) {
        Counter.hit("Handles.below(I)I");
        return n;
    }

    static int linked(int n) {
        Counter.hit("Handles.linked(I)I");
        return n + 1;
    }

    static int behindProxy() {
        Counter.hit("Handles.behindProxy()I");
        return 1;
    }

    /** Made in the graph, by every kind of lookup. */
    static void lookups() throws Throwable {
        Counter.hit("Handles.lookups()V");
        MethodType none = MethodType.methodType(int.class);
        MethodHandle made = LOOKUP.findConstructor(Made.class, MethodType.methodType(void.class, int.class));
        Made one = (Made) made.invokeExact(4);
        result += (int) LOOKUP.findVirtual(Made.class, "direct", none).invokeExact(one);
        result += (int) LOOKUP.findVirtual(Made.class, "inherited", none).invokeExact(one);
        result += (int) LOOKUP.findVirtual(Does.class, "byDefault", none).invoke(one);
        result += (int) LOOKUP.findVirtual(Made.class, "byDefault", none).invoke(one);
        result += (int) MethodHandles.privateLookupIn(Made.class, LOOKUP)
                .findSpecial(Base.class, "overridden", none, Made.class).invokeExact(one);
        result += (int) LOOKUP.bind(one, "bound", number()).invokeExact(2);
        result += (int) LOOKUP.findStatic(Late.class, "first", none).invokeExact();
        Method method = Made.class.getDeclaredMethod("unreflected", int.class);
        result += (int) LOOKUP.unreflect(method).invoke(one, 3);
        Constructor<?> constructor = Other.class.getDeclaredConstructor();
        result += ((Object) LOOKUP.unreflectConstructor(constructor).invoke()).hashCode() == 0 ? 1 : 0;
        result += (Integer) LOOKUP.findStatic(Handles.class, "spread", MethodType.methodType(int.class, int.class, int.class))
                .invokeWithArguments(List.of(1, 2));
    }

    static int spread(int a, int b) {
        Counter.hit("Handles.spread(II)I");
        return a + b;
    }

    /** Handles of handles. */
    static void combined() throws Throwable {
        Counter.hit("Handles.combined()V");
        MethodHandle test = LOOKUP.findStatic(Handles.class, "isOdd", MethodType.methodType(boolean.class, int.class));
        MethodHandle odd = LOOKUP.findStatic(Handles.class, "odd", number());
        MethodHandle even = LOOKUP.findStatic(Handles.class, "even", number());
        MethodHandle guarded = MethodHandles.guardWithTest(test, odd, even);
        MethodHandle filtered = MethodHandles.filterReturnValue(
                guarded.asType(MethodType.methodType(Object.class, Integer.class)),
                LOOKUP.findStatic(Handles.class, "filter", MethodType.methodType(Object.class, Object.class)));
        for (int i = 0; i < 5; i++) {
            result += (int) (Object) filtered.invoke((Integer) i);
        }
    }

    static boolean isOdd(int n) {
        Counter.hit("Handles.isOdd(I)Z");
        return n % 2 != 0;
    }

    static int odd(int n) {
        Counter.hit("Handles.odd(I)I");
        return n;
    }

    static int even(int n) {
        Counter.hit("Handles.even(I)I");
        return -n;
    }

    static Object filter(Object value) {
        Counter.hit("Handles.filter(Ljava/lang/Object;)Ljava/lang/Object;");
        return value;
    }

    static void throws_() throws Throwable {
        Counter.hit("Handles.throws_()V");
        try {
            LOOKUP.findStatic(Handles.class, "failing", MethodType.methodType(void.class)).invokeExact();
        } catch (IllegalStateException e) {
            result++;
        }
    }

    static void failing() {
        Counter.hit("Handles.failing()V");
        throw new IllegalStateException();
    }

    /** A lambda that is made at run time. */
    static void spun() throws Throwable {
        Counter.hit("Handles.spun()V");
        MethodType none = MethodType.methodType(int.class);
        CallSite site = LambdaMetafactory.metafactory(LOOKUP, "getAsInt", MethodType.methodType(IntSupplier.class), none,
                LOOKUP.findStatic(Handles.class, "implementation", none), none);
        result += ((IntSupplier) site.getTarget().invokeExact()).getAsInt();
        result += (int) new ConstantCallSite(LOOKUP.findStatic(Handles.class, "constant", none)).dynamicInvoker().invokeExact();
    }

    static int implementation() {
        Counter.hit("Handles.implementation()I");
        return 5;
    }

    static int constant() {
        Counter.hit("Handles.constant()I");
        return 6;
    }

    abstract static class Shape {
        abstract int area();
    }

    static class Square extends Shape {
        @Override
        int area() {
            Counter.hit("Handles$Square.area()I");
            return 4;
        }
    }

    static class Circle extends Shape {
        @Override
        int area() {
            Counter.hit("Handles$Circle.area()I");
            return 3;
        }
    }

    interface Does {
        default int byDefault() {
            Counter.hit("Handles$Does.byDefault()I");
            return 1;
        }
    }

    abstract static class Base {
        int overridden() {
            Counter.hit("Handles$Base.overridden()I");
            return 1;
        }

        int inherited() {
            Counter.hit("Handles$Base.inherited()I");
            return 2;
        }
    }

    static class Made extends Base implements Does {
        final int number;

        Made(int number) {
            Counter.hit("Handles$Made.<init>(I)V");
            this.number = number;
        }

        @Override
        int overridden() {
            Counter.hit("Handles$Made.overridden()I");
            return 3;
        }

        int direct() {
            Counter.hit("Handles$Made.direct()I");
            return number;
        }

        int bound(int n) {
            Counter.hit("Handles$Made.bound(I)I");
            return n;
        }

        int unreflected(int n) {
            Counter.hit("Handles$Made.unreflected(I)I");
            return n;
        }
    }

    static class Other {
        Other() {
            Counter.hit("Handles$Other.<init>()V");
        }
    }

    static class Late {
        static final int VALUE = initial();

        static int initial() {
            Counter.hit("Handles$Late.initial()I");
            return 7;
        }

        static int first() {
            Counter.hit("Handles$Late.first()I");
            return VALUE;
        }
    }
}
