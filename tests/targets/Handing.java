import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;

/**
 * Hands work to other threads, and counts what that calls, if it was handed over inside the root. Commands on standard input: the name of a
 * scenario, quit. DONE when all that a scenario began is over.
 */
public class Handing {
    static final Map<String, LongAdder> COUNTS = new ConcurrentSkipListMap<>();
    static final int TIMES = 50;
    /** Whoever wants something done after the root has returned. */
    static final List<Callable<?>> AFTERWARDS = new ArrayList<>();
    static final ExecutorService POOL = Executors.newFixedThreadPool(3);
    static final ExecutorService SINGLE = Executors.newSingleThreadExecutor();
    static final ExecutorService LATE = Executors.newFixedThreadPool(2);
    static ExecutorService madeInside;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        outside(POOL);
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            outside(POOL);
            root(line);
            outside(POOL);
            outside(ForkJoinPool.commonPool());
            if (madeInside != null) {
                outside(madeInside);
            }
            for (Callable<?> last : AFTERWARDS) {
                last.call();
            }
            AFTERWARDS.clear();
            outside(POOL);
            System.out.println("DONE");
        }
        COUNTS.forEach((method, count) -> System.out.println("COUNT " + count + " " + method));
        System.exit(0);
    }

    static void hit(String method) {
        COUNTS.computeIfAbsent(method, name -> new LongAdder()).increment();
    }

    /** Tasks that have nothing to do with the root, on the same pools, some of them the same objects. */
    static void outside(ExecutorService pool) throws Exception {
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < TIMES; i++) {
            all.add(pool.submit(() -> Work.outside()));
        }
        for (Future<?> each : all) {
            each.get();
        }
    }

    static void root(String scenario) throws Exception {
        hit("Handing.root(Ljava/lang/String;)V");
        switch (scenario) {
            case "threads": threads(); break;
            case "executors": executors(); break;
            case "scheduled": scheduled(); break;
            case "forkJoin": forkJoin(); break;
            case "futures": futures(); break;
            case "late": late(); break;
            case "callerRuns": callerRuns(); break;
            case "virtual": virtual(); break;
            default: throw new IllegalArgumentException(scenario);
        }
    }

    static class OwnThread extends Thread {
        @Override
        public void run() {
            hit("Handing$OwnThread.run()V");
            Work.inside();
        }
    }

    static class OwnTask implements Runnable {
        @Override
        public void run() {
            hit("Handing$OwnTask.run()V");
            Work.inside();
        }
    }

    static void threads() throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            threads.add(new OwnThread());
            threads.add(new Thread(new OwnTask()));
            threads.add(new Thread(() -> Work.inside()));
            threads.add(new Thread(() -> {
                Work.inside();
                Thread inner = new OwnThread();
                inner.start();
                Work.join(inner);
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void executors() throws Exception {
        madeInside = Executors.newFixedThreadPool(2);
        for (ExecutorService pool : new ExecutorService[] {POOL, madeInside}) {
            CountDownLatch done = new CountDownLatch(2 * TIMES);
            // One object, many times.
            Runnable same = () -> {
                Work.inside();
                done.countDown();
            };
            Runnable own = new OwnTask();
            for (int i = 0; i < TIMES; i++) {
                pool.execute(same);
                pool.execute(() -> {
                    own.run();
                    done.countDown();
                });
            }
            List<Callable<Integer>> calls = new ArrayList<>();
            for (int i = 0; i < TIMES; i++) {
                calls.add(() -> Work.result(1));
            }
            for (Future<Integer> each : pool.invokeAll(calls)) {
                each.get();
            }
            // Tasks hand over tasks, to their own pool and to another.
            Future<Future<Integer>> nested = pool.submit(() -> {
                Work.inside();
                return SINGLE.submit(() -> Work.result(2));
            });
            nested.get().get();
            // One that fails.
            try {
                pool.submit(() -> Work.failing()).get();
            } catch (java.util.concurrent.ExecutionException e) {
                Work.inside();
            }
            done.await();
        }
    }

    static void scheduled() throws Exception {
        ScheduledExecutorService pool = Executors.newScheduledThreadPool(2);
        List<Future<Integer>> all = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            all.add(pool.schedule(() -> Work.result(3), i % 3, TimeUnit.MILLISECONDS));
        }
        for (Future<Integer> each : all) {
            each.get();
        }
        CountDownLatch runs = new CountDownLatch(7);
        ScheduledFuture<?> periodic = pool.scheduleAtFixedRate(() -> {
            if (runs.getCount() > 0) {
                Work.inside();
                runs.countDown();
            }
        }, 0, 1, TimeUnit.MILLISECONDS);
        runs.await();
        periodic.cancel(false);
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.MINUTES);
    }

    static class Fib extends RecursiveTask<Integer> {
        final int n;

        Fib(int n) {
            this.n = n;
        }

        @Override
        protected Integer compute() {
            hit("Handing$Fib.compute()Ljava/lang/Integer;");
            if (n < 2) {
                return Work.result(n);
            }
            Fib left = new Fib(n - 1);
            left.fork();
            return new Fib(n - 2).compute() + left.join();
        }
    }

    static void forkJoin() throws Exception {
        ForkJoinPool own = new ForkJoinPool(3);
        own.invoke(new Fib(12));
        own.submit(() -> Work.result(4)).get();
        own.execute(new Fib(8));
        ForkJoinTask<Integer> task = ForkJoinPool.commonPool().submit(new Fib(10));
        task.get();
        IntStream.range(0, 1000).parallel().forEach(i -> Work.inside());
        own.submit(() -> IntStream.range(0, 500).parallel().map(i -> Work.result(i)).sum()).get();
        own.shutdown();
        own.awaitTermination(1, TimeUnit.MINUTES);
    }

    static void futures() throws Exception {
        CompletableFuture<Integer> chained = CompletableFuture.supplyAsync(() -> Work.result(5))
                .thenApplyAsync(n -> Work.result(n))
                .thenApplyAsync(n -> Work.result(n), POOL)
                .thenCombineAsync(CompletableFuture.supplyAsync(() -> Work.result(6), POOL), (a, b) -> Work.result(a + b));
        chained.get();
        CompletableFuture.allOf(
                CompletableFuture.runAsync(() -> Work.inside()),
                CompletableFuture.runAsync(() -> Work.inside(), SINGLE)).get();
        // Completed by a thread that has nothing to do with the root.
        CompletableFuture<Integer> source = new CompletableFuture<>();
        CompletableFuture<Integer> waiting = source.thenApplyAsync(n -> Work.result(n));
        CompletableFuture<Integer> onPool = source.thenApplyAsync(n -> Work.result(n), POOL);
        AFTERWARDS.add(() -> source.complete(1));
        AFTERWARDS.add(waiting::get);
        AFTERWARDS.add(onPool::get);
    }

    static void late() {
        CountDownLatch gate = new CountDownLatch(1);
        AFTERWARDS.add(() -> {
            gate.countDown();
            return null;
        });
        for (int i = 0; i < 10; i++) {
            Future<?> late = LATE.submit(() -> {
                Work.await(gate);
                Work.inside();
            });
            AFTERWARDS.add(late::get);
        }
    }

    static void callerRuns() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        ThreadPoolExecutor full =
                new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(1), new ThreadPoolExecutor.CallerRunsPolicy());
        full.execute(() -> Work.await(gate));
        Runnable same = () -> Work.inside();
        for (int i = 0; i < 10; i++) {
            full.execute(same);
        }
        full.setRejectedExecutionHandler(new ThreadPoolExecutor.DiscardPolicy());
        Runnable dropped = () -> Work.outside();
        for (int i = 0; i < 10; i++) {
            full.execute(dropped);
        }
        gate.countDown();
        while (full.getCompletedTaskCount() < 2) {
            Thread.onSpinWait();
        }
        AFTERWARDS.add(() -> {
            // What was thrown away inside is now handed over outside.
            full.execute(dropped);
            full.shutdown();
            return full.awaitTermination(1, TimeUnit.MINUTES);
        });
    }

    static void virtual() throws Exception {
        Callable<?> wait = startVirtual();
        ExecutorService each = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        List<Future<Integer>> all = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            all.add(each.submit(() -> {
                Work.inside();
                Thread.sleep(1);
                return Work.result(7);
            }));
        }
        for (Future<Integer> one : all) {
            one.get();
        }
        // A virtual thread hands over to a pool.
        each.submit(() -> POOL.submit(() -> Work.result(8)).get()).get();
        wait.call();
    }

    static Callable<?> startVirtual() throws Exception {
        CountDownLatch done = new CountDownLatch(20);
        for (int i = 0; i < 20; i++) {
            Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) () -> {
                Work.inside();
                Work.inside();
                done.countDown();
            });
        }
        return () -> {
            done.await();
            return null;
        };
    }

    /** What is handed over. */
    static class Work {
        static void inside() {
            hit("Handing$Work.inside()V");
            leaf(true);
        }

        static int result(int n) {
            hit("Handing$Work.result(I)I");
            leaf(true);
            return n;
        }

        static int failing() {
            hit("Handing$Work.failing()I");
            throw new IllegalStateException();
        }

        static int outside() {
            leaf(false);
            return 0;
        }

        static void leaf(boolean counts) {
            if (counts) {
                hit("Handing$Work.leaf(Z)V");
            }
        }

        static void await(CountDownLatch gate) {
            hit("Handing$Work.await(Ljava/util/concurrent/CountDownLatch;)V");
            try {
                gate.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        static void join(Thread thread) {
            hit("Handing$Work.join(Ljava/lang/Thread;)V");
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
