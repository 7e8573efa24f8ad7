import java.io.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.*;

/**
 * Its root is given objects that its code does not name, made before: the JDK calls them, and what is called by reflection within the JDK.
 * Warms up so many times as its argument says, then runs what each line on standard input names.
 */
public class Unnamed {
    static int sum;

    public static void main(String[] args) throws Throwable {
        Made made = new Made();
        // The root's class is there before the root is called.
        Class.forName("Unnamed$Start");
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Start.root("nothing", made);
        }
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            Start.root(line, made);
            Start.root(line, made);
            System.out.println("RESULT " + sum);
        }
    }

    static class Start {
        static void root(String line, Made made) throws Throwable {
            switch (line) {
                case "elements" -> sum += Elements.of(made.list, made.cache, made.any, made.comparables);
                case "within" -> Within.run(made.tasks.remove(0), made.later.remove(0), made.map, made.out, made.numbers);
                case "hooks" -> Hooks.of(made.recent, made.empty);
                case "reference" -> sum += Reference.of(made.sink, made.text);
                case "cause" -> sum += new CompletionException(made.cause).getMessage().length();
                case "enum" -> sum += EnumSet.allOf(Colour.class).size() + Enum.valueOf(Size.class, "SMALL").ordinal();
                case "stream" -> sum += Streams.copy(made.stored).hashCode();
                case "initialiser" -> Class.forName("Unnamed$Initialised");
                case "loader" -> made.plugins.get("next").run();
                case "driver" -> sum += java.sql.DriverManager.getDriver("unnamed:").getMajorVersion();
                case "failing" -> Failing.call();
                default -> sum++;
            }
        }
    }

    static class Elements {
        static <T extends Comparable<T>> int of(List<T> list, Cache<?, ?> cache, Object any, Comparable<?>[] comparables) {
            Collections.sort(list);
            Arrays.sort(comparables);
            return cache.get(any) + new HashSet<>(list).size() + String.valueOf(list).length();
        }
    }

    static class Cache<K, V> {
        final Map<K, V> map = new HashMap<>();

        int get(Object key) {
            return map.get(key) == null ? 1 : 2;
        }
    }

    static class Within {
        static void run(Runnable task, CompletableFuture<String> later, Map<String, Integer> map, PrintStream out, Iterator<Integer> numbers) {
            task.run();
            later.complete("x");
            map.put("a", sum);
            out.println(sum);
            sum += numbers.next();
        }
    }

    static class Hooks {
        static void of(Map<Integer, Integer> recent, HasEmpty it) {
            recent.put(recent.size() + sum++, 1);
            sum += it.isEmpty() ? 1 : 0;
        }
    }

    interface HasEmpty {
        boolean isEmpty();
    }

    interface Sink {
        boolean put(Key key);
    }

    static class Reference {
        static int of(Sink sink, Supplier<String> text) {
            return (sink.put(new Key(sum)) ? 1 : 0) + text.get().length();
        }
    }

    static class Streams {
        static Object copy(Object of) throws Exception {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(of);
            }
            return new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
        }
    }

    enum Colour {
        RED, GREEN;
        final int value = value();

        static int value() {
            return 1;
        }
    }

    enum Size { SMALL, LARGE }

    static class Initialised {
        static int value = value();

        static int value() {
            return 1;
        }
    }

    /** It fails to be initialised, and whoever tries first is told why. */
    static class Failing {
        static int attempts;

        static void call() throws Exception {
            try {
                Class.forName("Unnamed$Fails", false, Unnamed.class.getClassLoader()).getMethod("call").invoke(null);
            } catch (ExceptionInInitializerError first) {
                check(attempts++ == 0);
            } catch (NoClassDefFoundError later) {
                check(attempts++ == 1);
            }
        }

        static void check(boolean expected) {
            if (!expected) {
                throw new IllegalStateException("attempt " + attempts);
            }
        }
    }

    public static class Fails {
        static int value = value();

        static int value() {
            throw new IllegalStateException();
        }

        public static void call() {}
    }

    static class Key implements Comparable<Key>, Serializable {
        final int number;

        Key(int number) {
            this.number = number;
        }

        public int compareTo(Key other) {
            return Integer.compare(number, other.number);
        }

        @Override
        public int hashCode() {
            return number;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key key && key.number == number;
        }

        @Override
        public String toString() {
            return "key " + number;
        }
    }

    static class Version implements Comparable<Version> {
        public int compareTo(Version other) {
            return same(other);
        }

        int same(Version other) {
            return 0;
        }
    }

    record Point(int x, int y) implements Serializable {
        Point {
            x = checked(x);
        }

        static int checked(int x) {
            return x;
        }
    }

    static class Stored extends Unstored implements Serializable {
        transient int number = 3;

        private void writeObject(ObjectOutputStream out) throws IOException {
            out.writeInt(number);
            out.writeObject(new Point(1, 2));
        }

        private void readObject(ObjectInputStream in) throws Exception {
            number = in.readInt() + in.readObject().hashCode();
        }

        private Object readResolve() {
            return this;
        }

        @Override
        public int hashCode() {
            return number;
        }
    }

    static class Unstored {
        final int other;

        Unstored() {
            other = 1;
        }
    }

    static class Lru extends LinkedHashMap<Integer, Integer> {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, Integer> eldest) {
            return size() > 3;
        }
    }

    static class Empty extends AbstractList<String> implements HasEmpty {
        public int size() {
            return 0;
        }

        public String get(int index) {
            return null;
        }
    }

    static class Numbers extends AbstractList<Integer> {
        public int size() {
            return 1000;
        }

        public Integer get(int index) {
            return index;
        }
    }

    static class Out extends OutputStream {
        public void write(int it) {
            sum += it;
        }
    }

    static class Work implements Callable<Integer> {
        public Integer call() {
            return inner();
        }

        int inner() {
            return sum++;
        }
    }

    static class Failed extends Exception {
        @Override
        public String toString() {
            return text();
        }

        String text() {
            return "failed";
        }
    }

    static class Driver implements java.sql.Driver {
        public java.sql.Connection connect(String url, Properties info) {
            return null;
        }

        public boolean acceptsURL(String url) {
            return url.startsWith("unnamed:");
        }

        public java.sql.DriverPropertyInfo[] getPropertyInfo(String url, Properties info) {
            return new java.sql.DriverPropertyInfo[0];
        }

        public int getMajorVersion() {
            return 1;
        }

        public int getMinorVersion() {
            return 0;
        }

        public boolean jdbcCompliant() {
            return false;
        }

        public java.util.logging.Logger getParentLogger() {
            return null;
        }
    }

    /** Everything that is made before the root is called. */
    static class Made {
        final List<Key> list = new ArrayList<>();
        final Cache<Key, Integer> cache = new Cache<>();
        final Object any = new Key(2);
        final Comparable<?>[] comparables = {new Version(), new Version()};
        final List<Runnable> tasks = new ArrayList<>();
        final List<CompletableFuture<String>> later = new ArrayList<>();
        final Map<String, Integer> map = new TreeMap<>((one, other) -> Within.class == null ? 1 : order(one, other));
        final PrintStream out = new PrintStream(new Out(), true);
        final Iterator<Integer> numbers = new Numbers().iterator();
        final Map<Integer, Integer> recent = new Lru();
        final HasEmpty empty = new Empty();
        final Sink sink;
        final Supplier<String> text = any::toString;
        final Exception cause = new Failed();
        final Object stored = new Stored();
        final Map<String, Runnable> plugins = new HashMap<>();

        Made() throws Exception {
            for (int i = 5; i > 0; i--) {
                list.add(new Key(i));
                cache.map.put(list.get(0), i);
                tasks.add(new FutureTask<>(new Work()));
                CompletableFuture<String> future = new CompletableFuture<>();
                future.thenAccept(Made::take);
                later.add(future);
            }
            Set<Key> set = new HashSet<>();
            sink = set::add;
            // What every object has, and has never been called, would not be expected.
            sum += String.valueOf(any).length() + cause.toString().length() + (any.equals(list.get(3)) ? 1 : 0);
            java.sql.DriverManager.registerDriver(new Driver());
            for (String name : new String[] {"first", "next"}) {
                Class<?> plugin = new Plugins().loadClass("Unnamed$Plugin");
                plugins.put(name, (Runnable) plugin.getDeclaredConstructor().newInstance());
            }
            plugins.get("first").run();
            // Loads it, and does not initialise it.
            Class.forName("Unnamed$Initialised", false, Unnamed.class.getClassLoader());
        }

        static int order(String one, String other) {
            return one.compareTo(other);
        }

        static void take(String it) {
            sum += it.length();
        }
    }

    /** Two loaders have one of these each; the second loads what it calls when the first has been called already. */
    public static class Plugin implements Runnable {
        public void run() {
            Library.help();
            new Library().made();
        }
    }

    public static class Library {
        static int ready = 1;

        static void help() {
            ready++;
        }

        void made() {}
    }

    static class Plugins extends ClassLoader {
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("Unnamed$Plugin") && !name.equals("Unnamed$Library")) {
                return super.loadClass(name, resolve);
            }
            try (InputStream in = getResourceAsStream(name + ".class")) {
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }
}
