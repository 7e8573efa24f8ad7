/* One of everything that reflection tells of classes. */
import java.io.Serializable;
import java.lang.annotation.*;
import java.util.*;
import java.util.function.*;
import java.util.concurrent.Callable;

@Retention(RetentionPolicy.RUNTIME) @Target({ElementType.TYPE, ElementType.FIELD, ElementType.METHOD, ElementType.PARAMETER, ElementType.CONSTRUCTOR, ElementType.RECORD_COMPONENT, ElementType.LOCAL_VARIABLE})
@interface Mark { String value() default "none"; Class<?> type() default Object.class; int[] numbers() default {1, 2}; Kind kind() default Kind.FIRST; Inner inner() default @Inner; @interface Inner { long value() default 7; } }
@Retention(RetentionPolicy.RUNTIME) @Target({ElementType.TYPE_USE, ElementType.TYPE_PARAMETER})
@interface Use { String value() default "use"; }
@Retention(RetentionPolicy.CLASS) @interface Unseen {}

enum Kind { FIRST { @Override int number(@Mark("in constant") final int of) { return of + 1; } }, SECOND; int number(final int of) { return of; } }

@Mark("sealed") sealed interface Shape<@Use("of shape") T extends @Use("bound") Comparable<T> & Serializable> permits Circle, Square, Shape.Other {
    double area(@Mark("scale") final double scale);
    default @Use("result") String describe(T @Use("array") [] all, List<@Use("element") ? extends @Use("wild") T> others) throws @Use("thrown") IllegalStateException { return "shape"; }
    non-sealed class Other implements Shape<String> { public double area(double scale) { return scale; } }
}
record Circle(@Mark("r") double radius, List<String> names) implements Shape<String> {
    Circle { if (radius < 0) throw new IllegalArgumentException(); }
    Circle(double only) { this(only, List.of()); }
    public double area(double scale) { return radius * radius * 3 * scale; }
}
record Square(double side) implements Shape<Integer>, Serializable { public double area(double scale) { return side * side * scale; } }
record Generic<K extends Comparable<K>, V>(@Mark("key") K key, Map<K, ? super V> map, V... rest) {}
record Annotated(@Use("in record") String text) {}

@Deprecated(since = "3", forRemoval = true) @Mark(value = "everything", type = int[].class, numbers = {}, kind = Kind.SECOND, inner = @Mark.Inner(9))
public class Everything<A, B extends Number> extends @Use("super") AbstractMap<@Use String, B> implements @Use("itf") Callable<B>, Serializable, Cloneable {
    private static final long serialVersionUID = 42;
    static final int CONSTANT = 17; public static final String TEXT = "text"; static final double HALF = 0.5; static final long LONG = 1L << 40; static final float F = 1.5f; static final boolean YES = true;
    @Mark("field") protected transient volatile Map<@Use("in field") A, B @Use("dims") []> field;
    @Unseen @Use("plain") private int plain;
    public Everything(final A first, @Mark("second") B second, Object... more) throws java.io.IOException, IllegalStateException {}
    @Mark("private") private <@Use("variable") T extends B> T secret(@Mark("p") final T one, int two, long three, double[] four) throws Exception { synchronized (this) { return one; } }
    @Override public B call() { return null; }
    @Override public Set<Map.Entry<String, B>> entrySet() { return Set.of(); }
    @Override protected Everything<A, B> clone() { return this; }
    static int lines(int depth) {
        if (depth == 0) {
            throw new IllegalStateException(
                "at the bottom");
        }
        return lines(depth - 1)
            + 1;
    }
    strictfp static double strict(@Use("param") Everything<? super Number, Integer>.Member.Deeper deep) { return 1; }
    native int none(int a);
    final synchronized int both(int named) { return named; }
    class Member { final int captured; Member(@Mark("in member") int captured) { this.captured = captured; } class Deeper { Deeper(int deep) {} void receives(@Use("receiver") Everything<A, B>.Member.@Use Deeper this, int x) {} } }
    static class Nested<T> { private int hidden; }
    interface Itf { private int a(int x) { return x; } static int b(int y) { return y; } default int c(int z) { return a(z); } }
    Object local(final int captured) {
        class Local { int take(final int x) { return x + captured; } class InLocal {} }
        Object anonymous = new Object() { @Override public String toString() { return "a" + captured + new Local().take(1); } };
        IntFunction<Object> lambda = i -> new Object() { int of(int j) { return j + i; } };
        Supplier<Object> reference = this::call;
        return List.of(anonymous, lambda.apply(1), new Local());
    }
    static Object fixed = new Object() { int in(int initializer) { return initializer; } };
    { plain = 3; }
}
