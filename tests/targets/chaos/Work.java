import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntUnaryOperator;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What the root does: each returns the same for the same number, always. */
final class Work {
    private static final long LOADED_EVERY_NS = 50_000_000;
    private static final AtomicLong LAST_LOADED = new AtomicLong(System.nanoTime() - LOADED_EVERY_NS);
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final byte[] LOADED = bytes("Loaded.class");
    private static final Method VIRTUAL = virtual();
    private static IntUnaryOperator loaded;
    private static int guarded;

    private Work() {}

    static int locks(int n) {
        LOCK.lock();
        try {
            synchronized (Work.class) {
                guarded = n;
                int seen = 0;
                for (int i = 0; i < 5; i++) {
                    seen += increment();
                }
                return seen;
            }
        } finally {
            LOCK.unlock();
        }
    }

    private static synchronized int increment() {
        return ++guarded;
    }

    static int exceptions(int n) {
        int[] finallies = {0};
        for (int i = 0; i < 4; i++) {
            try {
                fail(i + n, 5, finallies);
            } catch (IllegalStateException expected) {
                finallies[0] += expected.getStackTrace().length > 5 ? 3 : 1000;
            } catch (ArithmeticException withoutTraceOnceCompiled) {
                finallies[0] += 5;
            }
        }
        return finallies[0];
    }

    private static int fail(int n, int depth, int[] finallies) {
        try {
            if (depth == 0) {
                return n % 2 == 0 ? n / (depth * n) : throwing(n);
            }
            return fail(n, depth - 1, finallies);
        } finally {
            finallies[0] += depth;
        }
    }

    private static int throwing(int n) {
        throw new IllegalStateException("of " + n);
    }

    static int lambdas(int n) {
        Supplier<IntStream> numbers = () -> IntStream.range(0, 20).map(i -> i * n + 1);
        List<Integer> odd = numbers.get().filter(i -> i % 2 == 1).boxed().collect(Collectors.toList());
        return odd.stream().mapToInt(Integer::intValue).sum() + numbers.get().reduce(0, (a, b) -> a * 17 ^ b);
    }

    static int texts(int n) {
        Map<String, Integer> counts = new TreeMap<>();
        StringBuilder all = new StringBuilder();
        for (int i = 0; i < 10; i++) {
            String key = "key-" + i % (n + 1);
            counts.merge(key, i, Integer::sum);
            all.append(key).append(counts.get(key));
        }
        return all.toString().hashCode() + counts.hashCode();
    }

    static int deep(int n) {
        return n == 0 ? 1 : deep(n - 1) * 31 + n;
    }

    /** The depth is not the same each time, that it ends is. */
    static int overflow() {
        try {
            return without(0);
        } catch (StackOverflowError expected) {
            return 1;
        }
    }

    private static int without(int depth) {
        return without(depth + 1) + 1;
    }

    /** Ten thousand frames, on a stack that has room for them. */
    static int far(int n) {
        int[] result = {0};
        Thread thread = new Thread(null, () -> result[0] = deep(10_000 + n), "far", 256L << 20);
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException nobodyDoes) {
            throw new AssertionError(nobodyDoes);
        }
        return result[0];
    }

    static int threads(int n) {
        AtomicInteger sum = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int number = i;
            threads.add(start(i, () -> sum.addAndGet(deep(number + n) ^ locks(number))));
        }
        try {
            for (Thread thread : threads) {
                thread.join();
            }
        } catch (InterruptedException nobodyDoes) {
            throw new AssertionError(nobodyDoes);
        }
        return sum.get();
    }

    /** Virtual ones, where there are any. */
    private static Thread start(int number, Runnable work) {
        if (hasVirtual() && number % 4 != 0) {
            return startVirtual(work);
        }
        Thread thread = new Thread(work);
        thread.start();
        return thread;
    }

    static boolean hasVirtual() {
        return VIRTUAL != null;
    }

    static Thread startVirtual(Runnable work) {
        try {
            return (Thread) VIRTUAL.invoke(null, work);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static Method virtual() {
        try {
            // In 19 and 20 it is a preview.
            return Runtime.version().feature() < 21 ? null : Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException none) {
            return null;
        }
    }

    static int loaded(int n) {
        return latest().applyAsInt(n);
    }

    private static synchronized IntUnaryOperator latest() {
        long now = System.nanoTime();
        if (now - LAST_LOADED.get() >= LOADED_EVERY_NS) {
            LAST_LOADED.set(now);
            try {
                loaded = (IntUnaryOperator) new Loader().define().getDeclaredConstructor().newInstance();
            } catch (ReflectiveOperationException impossible) {
                throw new AssertionError(impossible);
            }
        }
        return loaded;
    }

    static byte[] bytes(String resource) {
        try (InputStream in = Work.class.getResourceAsStream(resource)) {
            return in.readAllBytes();
        } catch (IOException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static final class Loader extends ClassLoader {
        Loader() {
            super(Work.class.getClassLoader());
        }

        Class<?> define() {
            return defineClass("Loaded", LOADED, 0, LOADED.length);
        }
    }
}
