import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** Counts its own calls of every kind. Commands on standard input: go, quit. */
public class Counting {
    static long result;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        // Outside the root: the same methods, not to be counted.
        result += Recursion.factorial(5) + new Shapes.Circle(2).area();
        Outside outside = new Outside();
        outside.start();
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            Counter.begin();
            root(line.length());
            Counter.end();
            result += Recursion.factorial(3);
            System.out.println("RESULT " + result);
        }
        outside.done = true;
        outside.join();
        Counter.print();
        System.out.println("BYE");
    }

    static void root(int n) {
        Counter.hit("Counting.root(I)V");
        result += Recursion.run();
        result += Throwing.run();
        result += Overloads.run();
        result += Shapes.run();
        result += Construction.run();
        result += Lambdas.run();
        result += Callbacks.run();
        result += Late.run(n);
        result += Threads.run();
        result += Odd.run();
    }

    /** Calls counted methods all the time, outside the root. */
    static class Outside extends Thread {
        volatile boolean done;

        @Override
        public void run() {
            while (!done) {
                Recursion.factorial(4);
                Shapes.total(Arrays.asList(new Shapes.Circle(1), new Shapes.Square(2)));
                Thread.yield();
            }
        }
    }

    static class Recursion {
        static long run() {
            Counter.hit("Counting$Recursion.run()J");
            return factorial(12) + (even(31) ? 1 : 0) + fib(12) + deep(500);
        }

        static long factorial(int n) {
            Counter.hit("Counting$Recursion.factorial(I)J");
            return n <= 1 ? 1 : n * factorial(n - 1);
        }

        static boolean even(int n) {
            Counter.hit("Counting$Recursion.even(I)Z");
            return n == 0 || odd(n - 1);
        }

        static boolean odd(int n) {
            Counter.hit("Counting$Recursion.odd(I)Z");
            return n != 0 && even(n - 1);
        }

        static int fib(int n) {
            Counter.hit("Counting$Recursion.fib(I)I");
            return n < 2 ? n : fib(n - 1) + fib(n - 2);
        }

        static int deep(int n) {
            Counter.hit("Counting$Recursion.deep(I)I");
            return n == 0 ? 0 : 1 + deep(n - 1);
        }
    }

    static class Throwing {
        static long run() {
            Counter.hit("Counting$Throwing.run()J");
            long sum = 0;
            for (int i = 0; i < 20; i++) {
                try {
                    sum += first(i);
                } catch (IllegalStateException e) {
                    sum += 1000;
                }
                sum += withFinally(i);
            }
            try (Resource outer = new Resource(); Resource inner = new Resource()) {
                sum += outer.hashCode() == inner.hashCode() ? 0 : 1;
                inner.fail();
            } catch (ArithmeticException e) {
                sum += 7;
            }
            try {
                sum += overflow(1);
            } catch (StackOverflowError e) {
                sum += 3;
            }
            sum += afterOverflow();
            return sum;
        }

        static int first(int i) {
            Counter.hit("Counting$Throwing.first(I)I");
            return second(i) + 1;
        }

        static int second(int i) {
            Counter.hit("Counting$Throwing.second(I)I");
            synchronized (Throwing.class) {
                return third(i) + 1;
            }
        }

        static int third(int i) {
            Counter.hit("Counting$Throwing.third(I)I");
            if (i % 3 == 0) {
                throw new IllegalStateException("three");
            }
            return i;
        }

        static int withFinally(int i) {
            Counter.hit("Counting$Throwing.withFinally(I)I");
            try {
                return Integer.parseInt(i % 2 == 0 ? "12" : "no number");
            } catch (NumberFormatException e) {
                return caught(e);
            } finally {
                cleanup();
            }
        }

        static int caught(Exception e) {
            Counter.hit("Counting$Throwing.caught(Ljava/lang/Exception;)I");
            return -1;
        }

        static void cleanup() {
            Counter.hit("Counting$Throwing.cleanup()V");
        }

        /** Not counted: how deep it gets depends on the instrumentation. */
        static int overflow(int n) {
            return overflow(n + 1) + 1;
        }

        static int afterOverflow() {
            Counter.hit("Counting$Throwing.afterOverflow()I");
            return 5;
        }

        static class Resource implements AutoCloseable {
            Resource() {
                Counter.hit("Counting$Throwing$Resource.<init>()V");
            }

            void fail() {
                Counter.hit("Counting$Throwing$Resource.fail()V");
                throw new ArithmeticException();
            }

            @Override
            public void close() {
                Counter.hit("Counting$Throwing$Resource.close()V");
            }
        }
    }

    static class Overloads {
        static long run() {
            Counter.hit("Counting$Overloads.run()J");
            long sum = over(1) + over(1L) + over("one") + over(new int[] {1, 2}) + over(1.5, 2.5f);
            for (char c = 'a'; c < 'f'; c++) {
                sum += sw(String.valueOf(c));
            }
            return sum + var() + var(1, 2, 3);
        }

        static int over(int x) {
            Counter.hit("Counting$Overloads.over(I)I");
            return x;
        }

        static long over(long x) {
            Counter.hit("Counting$Overloads.over(J)J");
            return x;
        }

        static int over(String x) {
            Counter.hit("Counting$Overloads.over(Ljava/lang/String;)I");
            return x.length();
        }

        static int over(int[] x) {
            Counter.hit("Counting$Overloads.over([I)I");
            return x.length;
        }

        static long over(double x, float y) {
            Counter.hit("Counting$Overloads.over(DF)J");
            return (long) (x + y);
        }

        static int var(int... xs) {
            Counter.hit("Counting$Overloads.var([I)I");
            return xs.length;
        }

        static int sw(String s) {
            Counter.hit("Counting$Overloads.sw(Ljava/lang/String;)I");
            switch (s) {
                case "a":
                    return 1;
                case "c":
                    return 3;
                default:
                    break;
            }
            int sum = 0;
            do {
                sum += s.charAt(0);
            } while (sum < 500);
            return sum;
        }
    }

    static class Shapes {
        interface Shape {
            int area();

            default int twice() {
                Counter.hit("Counting$Shapes$Shape.twice()I");
                return helper() * 2;
            }

            private int helper() {
                Counter.hit("Counting$Shapes$Shape.helper()I");
                return area();
            }

            static Shape of(int kind) {
                Counter.hit("Counting$Shapes$Shape.of(I)LCounting$Shapes$Shape;");
                return kind % 3 == 0 ? new Circle(kind) : kind % 3 == 1 ? new Square(kind) : new Rectangle(kind, 2);
            }
        }

        abstract static class Base {
            final int size;

            Base(int size) {
                Counter.hit("Counting$Shapes$Base.<init>(I)V");
                this.size = size;
            }

            /** Implements Shape.area for subclasses that are Shapes; Base is none. */
            public int area() {
                Counter.hit("Counting$Shapes$Base.area()I");
                return scale(size);
            }

            int scale(int x) {
                Counter.hit("Counting$Shapes$Base.scale(I)I");
                return x;
            }
        }

        static class Circle extends Base implements Shape {
            Circle(int radius) {
                super(radius);
                Counter.hit("Counting$Shapes$Circle.<init>(I)V");
            }

            @Override
            int scale(int x) {
                Counter.hit("Counting$Shapes$Circle.scale(I)I");
                return super.scale(x) * 3;
            }
        }

        static class Square extends Base implements Shape {
            Square(int side) {
                super(side);
                Counter.hit("Counting$Shapes$Square.<init>(I)V");
            }

            @Override
            public int area() {
                Counter.hit("Counting$Shapes$Square.area()I");
                return size * size;
            }

            @Override
            public int twice() {
                Counter.hit("Counting$Shapes$Square.twice()I");
                return Shape.super.twice() + 1;
            }
        }

        static final class Rectangle extends Base implements Shape {
            private final int width;

            Rectangle(int height, int width) {
                super(height);
                Counter.hit("Counting$Shapes$Rectangle.<init>(II)V");
                this.width = width;
            }

            @Override
            public int area() {
                Counter.hit("Counting$Shapes$Rectangle.area()I");
                return size * width;
            }
        }

        /** A bridge method calls the typed one. */
        static class Box implements Comparable<Box>, Function<Integer, String> {
            final int content;

            Box(int content) {
                this.content = content;
                Counter.hit("Counting$Shapes$Box.<init>(I)V");
            }

            @Override
            public int compareTo(Box other) {
                Counter.hit("Counting$Shapes$Box.compareTo(LCounting$Shapes$Box;)I");
                return Integer.compare(content, other.content);
            }

            @Override
            public String apply(Integer i) {
                Counter.hit("Counting$Shapes$Box.apply(Ljava/lang/Integer;)Ljava/lang/String;");
                return "box" + i;
            }
        }

        static long run() {
            Counter.hit("Counting$Shapes.run()J");
            List<Shape> shapes = new ArrayList<>();
            for (int i = 0; i < 9; i++) {
                shapes.add(Shape.of(i));
            }
            Function<Integer, String> box = new Box(3);
            return total(shapes) + box.apply(4).length() + new Box(1).compareTo(new Box(2));
        }

        static int total(List<? extends Shape> shapes) {
            Counter.hit("Counting$Shapes.total(Ljava/util/List;)I");
            int sum = 0;
            for (Shape shape : shapes) {
                sum += shape.area() + shape.twice();
            }
            return sum;
        }
    }

    static class Construction {
        static int instances;

        static class Parent {
            final String name;

            Parent(String name) {
                Counter.hit("Counting$Construction$Parent.<init>(Ljava/lang/String;)V");
                this.name = name;
                hook();
            }

            Parent(int number) {
                this(number > 3 ? "big" : number < 0 ? new StringBuilder("neg").append(number).toString() : pick(number));
                Counter.hit("Counting$Construction$Parent.<init>(I)V");
            }

            static String pick(int number) {
                Counter.hit("Counting$Construction$Parent.pick(I)Ljava/lang/String;");
                return "n" + number;
            }

            void hook() {
                Counter.hit("Counting$Construction$Parent.hook()V");
            }
        }

        static class Child extends Parent {
            Child(int number) {
                super(number % 2 == 0 ? number : Integer.parseInt(Parent.pick(number).substring(1)) + 1);
                Counter.hit("Counting$Construction$Child.<init>(I)V");
                if (number == 5) {
                    throw new IllegalArgumentException("five");
                }
            }

            @Override
            void hook() {
                Counter.hit("Counting$Construction$Child.hook()V");
                instances++;
            }
        }

        /** Its super constructor throws. */
        static class Grandchild extends Child {
            Grandchild() {
                super(5);
                throw new AssertionError("never reached");
            }
        }

        class Inner {
            final int value;

            Inner(int value) {
                Counter.hit("Counting$Construction$Inner.<init>(LCounting$Construction;I)V");
                this.value = value + outer();
            }
        }

        Construction() {
            Counter.hit("Counting$Construction.<init>()V");
        }

        int outer() {
            Counter.hit("Counting$Construction.outer()I");
            return 1;
        }

        enum Color {
            RED {
                @Override
                int code() {
                    Counter.hit("Counting$Construction$Color$1.code()I");
                    return 1;
                }
            },
            GREEN;

            int code() {
                Counter.hit("Counting$Construction$Color.code()I");
                return 2;
            }
        }


        static long run() {
            Counter.hit("Counting$Construction.run()J");
            int sum = 0;
            for (int i = -2; i < 8; i++) {
                try {
                    sum += new Child(i).name.length();
                } catch (IllegalArgumentException e) {
                    sum += 100;
                }
            }
            try {
                new Grandchild();
            } catch (IllegalArgumentException e) {
                sum += 200;
            }
            Construction outer = new Construction();
            for (Color color : Color.values()) {
                sum += color.code();
            }
            return sum + outer.new Inner(4).value + instances;
        }
    }

    static class Lambdas {
        static long run() {
            Counter.hit("Counting$Lambdas.run()J");
            IntUnaryOperator plus = x -> {
                Counter.hit("Counting$Lambdas.lambda$run$0(I)I");
                return x + 1;
            };
            Supplier<Made> made = Made::new;
            Function<Made, Integer> get = Made::get;
            IntUnaryOperator twice = Lambdas::twice;
            List<Integer> mapped = Arrays.asList(3, 1, 2).stream().map(Lambdas::boxed).collect(Collectors.toList());
            long sum = plus.applyAsInt(1) + twice.applyAsInt(4) + mapped.size();
            for (int i = 0; i < 4; i++) {
                sum += get.apply(made.get());
            }
            return sum;
        }

        static int twice(int x) {
            Counter.hit("Counting$Lambdas.twice(I)I");
            return x * 2;
        }

        static Integer boxed(Integer x) {
            Counter.hit("Counting$Lambdas.boxed(Ljava/lang/Integer;)Ljava/lang/Integer;");
            return x * 10;
        }

        static class Made {
            Made() {
                Counter.hit("Counting$Lambdas$Made.<init>()V");
            }

            int get() {
                Counter.hit("Counting$Lambdas$Made.get()I");
                return 6;
            }
        }
    }

    /** Methods that only the JDK calls. */
    static class Callbacks {
        static final Comparator<Key> ORDER = new ByValue();

        static class ByValue implements Comparator<Key> {
            @Override
            public int compare(Key a, Key b) {
                Counter.hit("Counting$Callbacks$ByValue.compare(LCounting$Callbacks$Key;LCounting$Callbacks$Key;)I");
                return a.value - b.value;
            }
        }

        static class Key {
            final int value;

            Key(int value) {
                Counter.hit("Counting$Callbacks$Key.<init>(I)V");
                this.value = value;
            }

            @Override
            public int hashCode() {
                Counter.hit("Counting$Callbacks$Key.hashCode()I");
                return value;
            }

            @Override
            public boolean equals(Object other) {
                Counter.hit("Counting$Callbacks$Key.equals(Ljava/lang/Object;)Z");
                return other instanceof Key && ((Key) other).value == value;
            }

            @Override
            public String toString() {
                Counter.hit("Counting$Callbacks$Key.toString()Ljava/lang/String;");
                return "key" + value;
            }
        }

        static class Range extends AbstractList<Integer> {
            @Override
            public Integer get(int index) {
                Counter.hit("Counting$Callbacks$Range.get(I)Ljava/lang/Integer;");
                return index * index;
            }

            @Override
            public int size() {
                Counter.hit("Counting$Callbacks$Range.size()I");
                return 5;
            }
        }

        static class Countdown implements Iterable<Integer> {
            @Override
            public Iterator<Integer> iterator() {
                Counter.hit("Counting$Callbacks$Countdown.iterator()Ljava/util/Iterator;");
                return new Iterator<>() {
                    int left = 3;

                    @Override
                    public boolean hasNext() {
                        Counter.hit("Counting$Callbacks$Countdown$1.hasNext()Z");
                        return left > 0;
                    }

                    @Override
                    public Integer next() {
                        Counter.hit("Counting$Callbacks$Countdown$1.next()Ljava/lang/Integer;");
                        return left--;
                    }
                };
            }
        }

        static long run() {
            Counter.hit("Counting$Callbacks.run()J");
            List<Key> keys = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                keys.add(new Key(7 * i % 5));
            }
            Collections.sort(keys, ORDER);
            Map<Key, String> map = new HashMap<>();
            for (Key key : keys) {
                map.merge(key, "" + key, String::concat);
            }
            long sum = map.size();
            for (int square : new Range()) {
                sum += square;
            }
            for (int i : new Countdown()) {
                sum += i;
            }
            return sum + map.get(new Key(2)).length();
        }
    }

    /** Classes that nobody has loaded when the root is entered for the first time. */
    static class Late {
        static long run(int n) {
            Counter.hit("Counting$Late.run(I)J");
            return new LateChild(n).work() + LateStatic.VALUE[0] + LateChild.helper();
        }
    }

    static class LateBase {
        static final int[] TABLE = table();

        static int[] table() {
            Counter.hit("Counting$LateBase.table()[I");
            return new int[] {1, 2, 3};
        }

        LateBase() {
            Counter.hit("Counting$LateBase.<init>()V");
        }

        int work() {
            Counter.hit("Counting$LateBase.work()I");
            return part() + TABLE[1];
        }

        int part() {
            Counter.hit("Counting$LateBase.part()I");
            return 0;
        }
    }

    static class LateChild extends LateBase implements Supplier<Integer> {
        final int n;

        LateChild(int n) {
            Counter.hit("Counting$LateChild.<init>(I)V");
            this.n = n;
        }

        @Override
        int part() {
            Counter.hit("Counting$LateChild.part()I");
            return n + super.part() + get();
        }

        @Override
        public Integer get() {
            Counter.hit("Counting$LateChild.get()Ljava/lang/Integer;");
            return 11;
        }

        static int helper() {
            Counter.hit("Counting$LateChild.helper()I");
            return 13;
        }
    }

    static class LateStatic {
        static final int[] VALUE;

        static {
            Counter.hit("Counting$LateStatic.<clinit>()V");
            VALUE = new int[] {Recursion.fib(5)};
        }
    }

    /** What other threads do is not below the root, also when it starts them. */
    static class Threads {
        static long run() {
            Counter.hit("Counting$Threads.run()J");
            Worker worker = new Worker();
            worker.start();
            long sum = onThisThread(3);
            try {
                worker.join();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            return sum + worker.result;
        }

        static long onThisThread(int n) {
            Counter.hit("Counting$Threads.onThisThread(I)J");
            return Recursion.factorial(n);
        }

        static class Worker extends Thread {
            long result;

            Worker() {
                Counter.hit("Counting$Threads$Worker.<init>()V");
            }

            @Override
            public void run() {
                Counter.hit("Counting$Threads$Worker.run()V");
                result = onThisThread(6);
            }
        }
    }

    static class Odd {
        static int count;

        static long run() {
            Counter.hit("Counting$Odd.run()J");
            return spin(10) + locked(3) + ((Supplier<Integer>) () -> anonymous().get()).get() + nested().length;
        }

        /** Begins with a loop head. */
        static int spin(int n) {
            while (true) {
                if (n-- <= 0) {
                    Counter.hit("Counting$Odd.spin(I)I");
                    return count;
                }
                count++;
            }
        }

        static synchronized int locked(int n) {
            Counter.hit("Counting$Odd.locked(I)I");
            return n == 0 ? 0 : locked(n - 1);
        }

        static Supplier<Integer> anonymous() {
            Counter.hit("Counting$Odd.anonymous()Ljava/util/function/Supplier;");
            return new Supplier<>() {
                @Override
                public Integer get() {
                    Counter.hit("Counting$Odd$1.get()Ljava/lang/Integer;");
                    return 21;
                }
            };
        }

        static int[][] nested() {
            Counter.hit("Counting$Odd.nested()[[I");
            return new int[2][3];
        }
    }
}
