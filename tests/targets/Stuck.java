import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Threads that wait for one another, in the ways that its arguments name, beside one that works. Says READY when all are where they
 * stay, and answers every line with a sum.
 */
public class Stuck {
    static final List<Thread> waiting = new ArrayList<>();

    /** Counts those that hold their first lock. */
    static void meet(CountDownLatch all) {
        all.countDown();
        try {
            all.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    static Thread start(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
        waiting.add(thread);
        return thread;
    }

    static Thread startVirtual(String name, Runnable task) {
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            builder = type.getMethod("name", String.class).invoke(builder, name);
            Thread thread = (Thread) type.getMethod("start", Runnable.class).invoke(builder, task);
            waiting.add(thread);
            return thread;
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    interface Starter {
        Thread start(String name, Runnable task);
    }

    /** So many threads, each of which holds a monitor and wants the next one's. */
    static void monitors(Starter starter, String name, int count) {
        Object[] monitors = new Object[count];
        for (int i = 0; i < count; i++) {
            monitors[i] = new Object();
        }
        CountDownLatch all = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            Object own = monitors[i];
            Object next = monitors[(i + 1) % count];
            starter.start(name + "-" + i, () -> {
                synchronized (own) {
                    meet(all);
                    enter(next);
                }
            });
        }
    }

    static void enter(Object monitor) {
        synchronized (monitor) {
            System.out.println("FREE");
        }
    }

    static void locks(Starter starter, String name) {
        ReentrantLock one = new ReentrantLock();
        ReentrantReadWriteLock other = new ReentrantReadWriteLock();
        CountDownLatch all = new CountDownLatch(2);
        starter.start(name + "-0", () -> {
            one.lock();
            meet(all);
            other.readLock().lock();
        });
        starter.start(name + "-1", () -> {
            other.writeLock().lock();
            meet(all);
            one.lock();
        });
    }

    static void mixed(Starter first, Starter second, String name) {
        ReentrantLock lock = new ReentrantLock();
        Object monitor = new Object();
        CountDownLatch all = new CountDownLatch(2);
        first.start(name + "-0", () -> {
            lock.lock();
            meet(all);
            enter(monitor);
        });
        second.start(name + "-1", () -> {
            synchronized (monitor) {
                meet(all);
                lock.lock();
            }
        });
    }

    static final CountDownLatch initialising = new CountDownLatch(2);

    static class Left {
        static {
            meet(initialising);
            Right.touch();
        }

        static void touch() {}
    }

    static class Right {
        static {
            meet(initialising);
            Left.touch();
        }

        static void touch() {}
    }

    static final CountDownLatch above = new CountDownLatch(2);

    static Object meetAbove() {
        meet(above);
        return above;
    }

    interface First {
        Object met = meetAbove();

        default void first() {}
    }

    interface Base {
        Object touched = touchDerived();

        default void base() {}
    }

    static Object touchDerived() {
        meet(above);
        return Derived.touch();
    }

    /** Whose initialisation begins with that of its interfaces: of `First`, and then of `Base`. */
    static class Derived implements First, Base {
        static Object touch() {
            return above;
        }
    }

    /** A class that takes a monitor while it is initialised. */
    static class Guarded {
        static final Object monitor = new Object();
        static final CountDownLatch all = new CountDownLatch(2);

        static class Late {
            static {
                meet(all);
                enter(monitor);
            }

            static void touch() {}
        }
    }

    /** Loads each of two classes by way of the other loader. */
    static class Loader extends ClassLoader {
        final CountDownLatch all;
        Loader other;

        Loader(CountDownLatch all) {
            this.all = all;
        }

        @Override
        protected synchronized Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (name.startsWith("first.")) {
                meet(all);
                return other.loadClass(name.substring(6), false);
            }
            return super.loadClass(name, resolve);
        }
    }

    static void loaders() {
        CountDownLatch all = new CountDownLatch(2);
        Loader[] loaders = {new Loader(all), new Loader(all)};
        loaders[0].other = loaders[1];
        loaders[1].other = loaders[0];
        for (int i = 0; i < 2; i++) {
            Loader loader = loaders[i];
            start("loader-" + i, () -> {
                try {
                    loader.loadClass("first.java.lang.Object", false);
                } catch (ClassNotFoundException e) {
                    throw new AssertionError(e);
                }
            });
        }
    }

    /** Many threads that want a lock of one that waits for a socket. */
    static void pool(int count, boolean monitor) throws Exception {
        ReentrantLock lock = new ReentrantLock();
        CountDownLatch held = new CountDownLatch(1);
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket socket = new Socket(server.getInetAddress(), server.getLocalPort());
        Socket accepted = server.accept();
        start("owner", () -> {
            try {
                if (monitor) {
                    synchronized (lock) {
                        held.countDown();
                        readForever(socket);
                    }
                }
                lock.lock();
                held.countDown();
                readForever(socket);
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
        held.await();
        ExecutorService pool = Executors.newFixedThreadPool(count, task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            waiting.add(thread);
            return thread;
        });
        for (int i = 0; i < count; i++) {
            pool.execute(() -> {
                if (monitor) {
                    enter(lock);
                } else {
                    lock.lock();
                }
            });
        }
        keep.add(accepted);
    }

    static final List<Object> keep = new ArrayList<>();

    static void readForever(Socket socket) throws Exception {
        socket.getInputStream().read();
    }

    static volatile long burned;

    static void burn() {
        for (;;) {
            burned++;
        }
    }

    /** Threads that work, take monitors of each other for moments, and hold nobody up for good. */
    static void busy() {
        Object[] monitors = {new Object(), new Object()};
        ReentrantLock lock = new ReentrantLock();
        for (int i = 0; i < 4; i++) {
            Thread thread = new Thread(() -> {
                for (;;) {
                    lock.lock();
                    try {
                        synchronized (monitors[0]) {
                            synchronized (monitors[1]) {
                                burned++;
                            }
                        }
                    } finally {
                        lock.unlock();
                    }
                }
            }, "busy-" + i);
            thread.setDaemon(true);
            thread.start();
        }
    }

    static void parkForever() {
        for (;;) {
            LockSupport.park();
        }
    }

    static void pinned() {
        Object monitor = new Object();
        startVirtual("pinned", () -> inNative(Stuck::parkForever));
    }

    /** Runs a task below a native frame, or, in a JDK where that suffices, below a monitor. */
    static void inNative(Runnable task) {
        synchronized (new Object()) {
            try {
                // An initialiser is called by the JVM itself.
                Pinning.task = task;
                Pinning.touch();
            } catch (Throwable e) {
                throw new AssertionError(e);
            }
        }
    }

    static class Pinning {
        static Runnable task;

        static void touch() {
            Inner.touch();
        }

        static class Inner {
            static {
                task.run();
            }

            static void touch() {}
        }
    }

    static void scenario(String name) throws Exception {
        Starter platform = Stuck::start;
        Starter virtual = Stuck::startVirtual;
        switch (name) {
            case "monitors": monitors(platform, "monitor", 2); break;
            case "three": monitors(platform, "three", 3); break;
            case "locks": locks(platform, "lock"); break;
            case "mixed": mixed(platform, platform, "mixed"); break;
            case "loaders": loaders(); break;
            case "init":
                start("left", Left::touch);
                start("right", Right::touch);
                break;
            case "superinit":
                start("base", () -> keep.add(Base.touched));
                start("derived", Derived::touch);
                break;
            case "initmonitor":
                start("initialiser", Guarded.Late::touch);
                start("holder", () -> {
                    synchronized (Guarded.monitor) {
                        meet(Guarded.all);
                        Guarded.Late.touch();
                    }
                });
                break;
            case "pool": pool(17, false); break;
            case "monitorpool": pool(17, true); break;
            case "busy": busy(); break;
            case "burner":
                Thread burner = new Thread(Stuck::burn, "burner");
                burner.setDaemon(true);
                burner.start();
                break;
            case "crowd":
                for (int i = 0; i < 2000; i++) {
                    start("crowd-" + i, Stuck::parkForever);
                }
                break;
            case "hostile":
                start("a\n\"b\" #7 daemon prio=5 tid=0x1 nid=0x1 runnable\n\tat evil.Spoof.run(Spoof.java:1)\n\u001b[2J\u202e", Stuck::parkForever);
                break;
            case "vmonitors": monitors(virtual, "vmonitor", 2); break;
            case "vlocks": locks(virtual, "vlock"); break;
            case "vmixed": mixed(platform, virtual, "vmixed"); break;
            case "parked":
                for (int i = 0; i < 20; i++) {
                    startVirtual("parked-" + i, Stuck::parkForever);
                }
                break;
            case "pinned": pinned(); break;
            default: throw new AssertionError(name);
        }
    }

    /** Whether a thread is where it stays: the JVM takes those that wait for a class for runnable. */
    static boolean isWaiting(Thread thread) {
        switch (thread.getState()) {
            case BLOCKED:
            case WAITING:
            case TIMED_WAITING:
                return true;
            default:
                StackTraceElement[] stack = thread.getStackTrace();
                return stack.length > 0 && !meets(stack);
        }
    }

    /** Of those that the JVM takes for runnable. */
    static List<StackTraceElement[]> stacks() {
        List<StackTraceElement[]> stacks = new ArrayList<>();
        for (Thread thread : waiting) {
            if (thread.getState() == Thread.State.RUNNABLE) {
                stacks.add(thread.getStackTrace());
            }
        }
        return stacks;
    }

    static boolean meets(StackTraceElement[] stack) {
        for (StackTraceElement frame : stack) {
            if (frame.getMethodName().equals("meet")) {
                return true;
            }
        }
        return false;
    }

    public static void main(String[] scenarios) throws Exception {
        for (String name : scenarios) {
            scenario(name);
        }
        for (Thread thread : waiting) {
            while (!isWaiting(thread)) {
                Thread.onSpinWait();
            }
        }
        // A class's initialisation, and a socket, are waited for by a thread that runs: where it stands twice, it stays.
        List<StackTraceElement[]> before = stacks();
        for (;;) {
            Thread.sleep(50);
            List<StackTraceElement[]> now = stacks();
            if (java.util.Arrays.deepEquals(before.toArray(), now.toArray()) && now.stream().noneMatch(Stuck::meets)) {
                break;
            }
            before = now;
        }
        System.out.println("READY");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        long sum = 0;
        for (String line; (line = lines.readLine()) != null; ) {
            for (int i = 0; i < 1000; i++) {
                sum += i;
            }
            System.out.println("RESULT " + sum);
        }
        // Threads that nobody can wake keep nobody from ending.
        Runtime.getRuntime().halt(0);
    }
}
