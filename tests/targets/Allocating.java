import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** Allocates, and has the JVM say how much. */
public class Allocating {
    static final com.sun.management.ThreadMXBean JVM =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    static final String[] PARTS = {"small", "large", "strings", "nested", "thrown", "collected"};
    static final int TIMES = 50;
    /** So often that C2 is asked for whatever is called: who asks allocates the string constants of the method's class. */
    static final int WARM = 20_000;
    static volatile Object kept;
    static volatile boolean over;

    /** What the JVM says that a thread has allocated: in each part, without a profile, and in a root call, with one. */
    static class Said {
        final long[] parts = new long[PARTS.length];
        long root;
    }

    static long allocated() {
        return JVM.getThreadAllocatedBytes(Thread.currentThread().getId());
    }

    static void root() {
        for (int part = 0; part < PARTS.length; part++) {
            run(part);
        }
    }

    /** The same outside the call graph. */
    static void measure(Said said) {
        for (int part = 0; part < PARTS.length; part++) {
            long before = allocated();
            run(part);
            said.parts[part] = allocated() - before;
        }
    }

    static void run(int part) {
        switch (part) {
            case 0:
                small();
                break;
            case 1:
                large();
                break;
            case 2:
                strings();
                break;
            case 3:
                nested(TIMES);
                break;
            case 4:
                thrown();
                break;
            default:
                collected();
        }
    }

    static void small() {
        for (int i = 0; i < TIMES; i++) {
            kept = new Object();
            kept = new byte[i];
        }
    }

    /** More than fits into a buffer of the thread's. */
    static void large() {
        for (int i = 0; i < 3; i++) {
            kept = new long[300_000 + i];
        }
    }

    static void strings() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < TIMES; i++) {
            text.append(i).append(',');
        }
        kept = text.toString();
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < TIMES; i++) {
            list.add(kept);
        }
        kept = list;
    }

    static void nested(int depth) {
        kept = new int[depth];
        if (depth > 0) {
            nested(depth - 1);
            kept = new int[3];
        }
    }

    static void thrown() {
        for (int i = 0; i < TIMES; i++) {
            try {
                kept = new byte[100];
                fail();
            } catch (IllegalStateException e) {
                kept = e;
            }
        }
    }

    static void fail() {
        throw new IllegalStateException("it is to fail");
    }

    /** Collections take the thread's buffer away. */
    static void collected() {
        for (int i = 0; i < 3; i++) {
            kept = new byte[1000];
            System.gc();
            kept = new byte[2000];
        }
    }

    /** What is loaded, linked and resolved for the first time is done with. */
    static void warmUp() {
        for (int i = 0; i < WARM; i++) {
            allocated();
        }
        for (int i = 0; i < WARM / TIMES; i++) {
            small();
            strings();
            nested(TIMES);
            thrown();
        }
        for (int i = 0; i < 3; i++) {
            measure(new Said());
            root();
        }
    }

    /** In a virtual thread, which others take turns with: the JVM says nothing of it. */
    static void turns() {
        for (int i = 0; i < TIMES; i++) {
            turn();
        }
    }

    static void turn() {
        kept = new byte[1000];
        Thread.yield();
        kept = new byte[1000];
        LockSupport.parkNanos(100_000);
        kept = new byte[1000];
    }

    /** A neighbour of such a thread, on the same carrier. It parks: one that only yields may be all that JDK 25 runs there. */
    static void neighbour() {
        while (!over) {
            kept = new byte[5000];
            LockSupport.parkNanos(10_000);
        }
    }

    static Thread virtual(Runnable work) throws Exception {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        boolean virtual = arguments.length > 1;
        Said[] all = new Said[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Said();
        }
        if (!virtual) {
            warmUp();
            run(all, Allocating::measure);
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = in.readLine(); !line.equals("quit"); line = in.readLine()) {
            if (virtual) {
                virtual(Allocating::neighbour);
                Thread[] started = new Thread[threads];
                for (int i = 0; i < threads; i++) {
                    started[i] = virtual(Allocating::turns);
                }
                for (Thread one : started) {
                    one.join();
                }
                over = true;
            } else {
                run(all, Allocating::measureRoot);
            }
            System.out.println("DONE");
        }
        for (int part = 0; part < PARTS.length; part++) {
            int index = part;
            System.out.println(PARTS[part] + " " + Stream.of(all).mapToLong(said -> said.parts[index]).sum());
        }
        System.out.println("root " + Stream.of(all).mapToLong(said -> said.root).sum());
    }

    static void measureRoot(Said said) {
        long before = allocated();
        root();
        said.root = allocated() - before;
    }

    /** In each thread, at the same time. */
    static void run(Said[] all, Consumer<Said> work) throws InterruptedException {
        CountDownLatch ready = new CountDownLatch(all.length);
        Thread[] threads = new Thread[all.length];
        for (int i = 0; i < all.length; i++) {
            Said said = all[i];
            threads[i] = new Thread(() -> {
                ready.countDown();
                try {
                    ready.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                work.accept(said);
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
