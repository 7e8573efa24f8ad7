import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;
import java.util.function.IntBinaryOperator;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Counts its own calls, in the language of JDK 17, and where calls come back from the JDK. Commands: go, quit. */
public class Modern {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        int round = 0;
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            Counter.begin();
            long result = root(round++);
            Counter.end();
            System.out.println("RESULT " + result);
        }
        Counter.print();
        System.out.println("BYE");
    }

    static long root(int round) throws Exception {
        Counter.hit("Modern.root(I)J");
        return interfaces() + records() + enums() + initialisation() + resources() + keys(round) + iteration()
                + failures() + references() + lambdas() + threads();
    }

    interface Greeter {
        String greet(String name);

        default String twice(String name) {
            Counter.hit("Modern$Greeter.twice(Ljava/lang/String;)Ljava/lang/String;");
            return pad(greet(name)) + greet(name);
        }

        private String pad(String text) {
            Counter.hit("Modern$Greeter.pad(Ljava/lang/String;)Ljava/lang/String;");
            return text + " ";
        }

        static Greeter loud() {
            Counter.hit("Modern$Greeter.loud()LModern$Greeter;");
            return new Loud();
        }
    }

    static class Loud implements Greeter {
        @Override
        public String greet(String name) {
            Counter.hit("Modern$Loud.greet(Ljava/lang/String;)Ljava/lang/String;");
            return name.toUpperCase();
        }
    }

    static long interfaces() {
        Greeter doubling = name -> name + name;
        return Greeter.loud().twice("bob").length() + doubling.twice("x").length();
    }

    record Point(int x, int y) implements Comparable<Point> {
        Point {
            Counter.hit("Modern$Point.<init>(II)V");
            if (x < 0) {
                throw new IllegalArgumentException();
            }
        }

        static Point of(int both) {
            Counter.hit("Modern$Point.of(I)LModern$Point;");
            return new Point(both, both);
        }

        int sum() {
            Counter.hit("Modern$Point.sum()I");
            return x + y;
        }

        @Override
        public int compareTo(Point other) {
            Counter.hit("Modern$Point.compareTo(LModern$Point;)I");
            return Integer.compare(sum(), other.sum());
        }
    }

    static class ByX implements Comparator<Point> {
        @Override
        public int compare(Point a, Point b) {
            Counter.hit("Modern$ByX.compare(LModern$Point;LModern$Point;)I");
            return a.x() - b.x();
        }
    }

    static <T extends Comparable<T>> T max(List<T> all) {
        Counter.hit("Modern.max(Ljava/util/List;)Ljava/lang/Comparable;");
        T max = all.get(0);
        for (T one : all) {
            if (one.compareTo(max) > 0) {
                max = one;
            }
        }
        return max;
    }

    static long records() {
        List<Point> points = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            points.add(new Point(10 - i, i * 3));
        }
        long sum = 0;
        try {
            new Point(-1, 0);
        } catch (IllegalArgumentException expected) {
            sum++;
        }
        Collections.sort(points);
        points.sort(new ByX());
        sum += max(points).sum() + new TreeSet<>(points).size();
        sum += Stream.of(1, 2, 3).map(Point::of).mapToInt(Point::sum).sum();
        PriorityQueue<Point> queue = new PriorityQueue<>(points);
        while (!queue.isEmpty()) {
            sum += queue.poll().sum();
        }
        return sum + (new Point(1, 2).equals(new Point(1, 2)) ? 1 : 0);
    }

    enum Operation implements IntBinaryOperator {
        ADD {
            @Override
            public int applyAsInt(int a, int b) {
                Counter.hit("Modern$Operation$1.applyAsInt(II)I");
                return a + b;
            }
        },
        MULTIPLY {
            @Override
            public int applyAsInt(int a, int b) {
                Counter.hit("Modern$Operation$2.applyAsInt(II)I");
                return a * b;
            }
        };

        Operation() {
            Counter.hit("Modern$Operation.<init>(Ljava/lang/String;I)V");
        }
    }

    static long enums() {
        long sum = 0;
        for (Operation operation : Operation.values()) {
            sum += operation.applyAsInt(3, 4);
        }
        return sum;
    }

    abstract static class Node<T extends Comparable<T>> {
        final T value;

        Node(T value) {
            this.value = value;
            begin();
        }

        abstract void begin();

        abstract T get();
    }

    static class IntNode extends Node<Integer> {
        int begun;

        IntNode(int value) {
            super(value);
            Counter.hit("Modern$IntNode.<init>(I)V");
        }

        @Override
        void begin() {
            Counter.hit("Modern$IntNode.begin()V");
            begun++;
        }

        @Override
        Integer get() {
            Counter.hit("Modern$IntNode.get()Ljava/lang/Integer;");
            return value + 1;
        }
    }

    static class Lazy {
        static int value;

        static {
            Counter.hit("Modern$Lazy.<clinit>()V");
            value = boot();
        }

        static int boot() {
            Counter.hit("Modern$Lazy.boot()I");
            return 42;
        }
    }

    static class Failing {
        static {
            Counter.hit("Modern$Failing.<clinit>()V");
            if (Counter.class != null) {
                throw new IllegalStateException();
            }
        }

        static void never() {}
    }

    static long initialisation() {
        long sum = Lazy.value;
        try {
            Failing.never();
        } catch (LinkageError expected) {
            sum += 5;
        }
        IntNode node = new IntNode(7);
        Node<Integer> bridged = node;
        return sum + bridged.get() + node.get() + node.begun;
    }

    static class Resource implements AutoCloseable {
        final boolean bad;

        Resource(boolean bad) {
            Counter.hit("Modern$Resource.<init>(Z)V");
            this.bad = bad;
        }

        @Override
        public void close() throws Exception {
            Counter.hit("Modern$Resource.close()V");
            if (bad) {
                throw new Exception();
            }
        }
    }

    static long resources() {
        try (Resource good = new Resource(false); Resource bad = new Resource(true)) {
            return good.bad == bad.bad ? 0 : 1;
        } catch (Exception expected) {
            return 2;
        }
    }

    static class Key implements Cloneable {
        final int number;

        Key(int number) {
            Counter.hit("Modern$Key.<init>(I)V");
            this.number = number;
        }

        @Override
        public int hashCode() {
            Counter.hit("Modern$Key.hashCode()I");
            return number % 3;
        }

        @Override
        public boolean equals(Object other) {
            Counter.hit("Modern$Key.equals(Ljava/lang/Object;)Z");
            return other instanceof Key key && key.number == number;
        }

        @Override
        public String toString() {
            Counter.hit("Modern$Key.toString()Ljava/lang/String;");
            return "K" + number;
        }

        @Override
        public Key clone() throws CloneNotSupportedException {
            Counter.hit("Modern$Key.clone()LModern$Key;");
            return (Key) super.clone();
        }
    }

    static long keys(int round) throws Exception {
        Map<Key, Integer> map = new HashMap<>();
        for (int i = 0; i < 12; i++) {
            map.merge(new Key(i % 7), 1, Integer::sum);
        }
        return map.size() + ("" + new Key(round % 2)).length() + String.valueOf(new Key(2)).length() + new Key(3).clone().number;
    }

    static class Range implements Iterable<Integer> {
        final int end;

        Range(int end) {
            Counter.hit("Modern$Range.<init>(I)V");
            this.end = end;
        }

        @Override
        public Iterator<Integer> iterator() {
            Counter.hit("Modern$Range.iterator()Ljava/util/Iterator;");
            return new Iterator<>() {
                int next;

                @Override
                public boolean hasNext() {
                    Counter.hit("Modern$Range$1.hasNext()Z");
                    return next < end;
                }

                @Override
                public Integer next() {
                    Counter.hit("Modern$Range$1.next()Ljava/lang/Integer;");
                    return next++;
                }
            };
        }
    }

    static int vary(int... numbers) {
        Counter.hit("Modern.vary([I)I");
        return Arrays.stream(numbers).sum();
    }

    static int choose(String text) {
        Counter.hit("Modern.choose(Ljava/lang/String;)I");
        return switch (text) {
            case "a" -> 1;
            case "bb" -> 2;
            default -> text.length();
        };
    }

    static long iteration() {
        long sum = vary() + vary(1, 2, 3) + choose("a") + choose("bb") + choose("zzzz");
        for (int i : new Range(5)) {
            sum += i;
        }
        return sum;
    }

    static class Base {
        Base(int number) {
            Counter.hit("Modern$Base.<init>(I)V");
            if (number > 5) {
                throw new IllegalArgumentException();
            }
        }
    }

    /** Its constructor may fail before, in, and after the superclass's. */
    static class Derived extends Base {
        Derived(int number) {
            super(check(number));
            check(number + 1);
        }

        static int check(int number) {
            Counter.hit("Modern$Derived.check(I)I");
            if (number == 3) {
                throw new IllegalStateException();
            }
            return number;
        }
    }

    static int endless(int level) {
        return 1 + endless(level + 1) * 2;
    }

    static int finallyReturns(int number) {
        Counter.hit("Modern.finallyReturns(I)I");
        try {
            if (number % 2 == 0) {
                throw new IllegalStateException();
            }
            return number;
        } catch (IllegalStateException expected) {
            return -number;
        } finally {
            if (number % 3 == 0) {
                return 99;
            }
        }
    }

    static synchronized int locked(int level) {
        Counter.hit("Modern.locked(I)I");
        return level == 0 ? 0 : 1 + locked(level - 1);
    }

    static long failures() {
        long sum = locked(20);
        for (int i = 0; i < 9; i++) {
            sum += finallyReturns(i);
            try {
                new Derived(i);
            } catch (RuntimeException expected) {
                sum++;
            }
        }
        try {
            endless(0);
        } catch (StackOverflowError expected) {
            sum += 3;
        }
        return sum;
    }

    static class Super {
        String name() {
            Counter.hit("Modern$Super.name()Ljava/lang/String;");
            return "super";
        }
    }

    static class Sub extends Super {
        @Override
        String name() {
            Counter.hit("Modern$Sub.name()Ljava/lang/String;");
            Supplier<String> above = super::name;
            Supplier<String> own = this::own;
            return above.get() + own.get();
        }

        private String own() {
            Counter.hit("Modern$Sub.own()Ljava/lang/String;");
            return "own";
        }
    }

    static long references() {
        return new Sub().name().length() + ((Super) new Sub()).name().length();
    }

    static int increment(int number) {
        Counter.hit("Modern.increment(I)I");
        return number + 1;
    }

    static long fibonacci(int n, Map<Integer, Long> known) {
        Counter.hit("Modern.fibonacci(ILjava/util/Map;)J");
        if (n < 2) {
            return n;
        }
        Long found = known.get(n);
        if (found == null) {
            found = fibonacci(n - 1, known) + fibonacci(n - 2, known);
            known.put(n, found);
        }
        return found;
    }

    static long lambdas() {
        Function<Integer, Function<Integer, Integer>> curried = a -> b -> increment(a + b);
        int[] calls = {0};
        new Object() {
            void go(int level) {
                Counter.hit("Modern$1.go(I)V");
                calls[0]++;
                if (level > 0) {
                    go(level - 1);
                }
            }
        }.go(6);
        return fibonacci(30, new HashMap<>())
                + IntStream.range(0, 50).map(Modern::increment).filter(n -> n % 2 == 0).sum()
                + Optional.of(4).map(n -> increment(n)).get()
                + curried.apply(3).apply(4)
                + calls[0]
                + Stream.of(3, 1, 2).sorted(Comparator.comparing(n -> increment(n))).findFirst().get();
    }

    static class Task extends Thread {
        @Override
        public void run() {
            Counter.hit("Modern$Task.run()V");
        }
    }

    static long threads() throws Exception {
        Runnable onThisThread = new Task();
        onThisThread.run();
        new Task().run();
        ExecutorService others = Executors.newFixedThreadPool(2);
        int sum = others.submit(() -> increment(9)).get();
        others.shutdown();
        return sum + CompletableFuture.completedFuture(1).thenApply(Modern::increment).get();
    }
}
