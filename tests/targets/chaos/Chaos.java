import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Recording;

/**
 * Checks itself without pause, whatever is done to it:
 *
 * <pre>
 *   look       LOOK root calls, requests, wrong results, the longest stand of either since the last look in ms
 *   crowd      CROWD: very many threads call the root now and then, virtual ones where there are any
 *   record     RECORDED: the flight recorder ran, which gives some classes of the JDK other code for good
 *   baseline   BASELINE classes: their code is remembered
 *   restored   CHANGED classes: how many have other code than was remembered, and one of them
 *   lenient    LENIENT: from here on work may fail, but not be wrong
 *   strict     STRICT: not any more
 *   heap, metaspace   TAKING: takes all of it for some seconds
 *   exit       System.exit(7) within the root
 *   halt       Runtime.halt(8)
 *   throw      the last thread that is no daemon ends by an exception
 *   quit       WRONG results, and a good end
 * </pre>
 */
public final class Chaos {
    private static final int WORKERS = 3;
    private static final int KINDS = 16;
    /** So many wrong results are told. */
    private static final int SAID = 20;
    private static final long PAUSE_NS = 200_000;
    private static final int CROWD = 1_000;
    private static final int VIRTUAL_CROWD = 10_000;
    private static final long LONGEST_REST_NS = 60_000_000_000L;
    private static final AtomicLong CALLS = new AtomicLong();
    private static final AtomicLong WRONG = new AtomicLong();
    private static final int[] EXPECTED = new int[KINDS];
    private static final Stands STANDS = new Stands();
    private static volatile boolean exiting;

    private Chaos() {}

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        for (int n = 0; n < KINDS; n++) {
            EXPECTED[n] = root(n);
        }
        Web web = new Web(STANDS);
        for (int worker = 0; worker < WORKERS; worker++) {
            int first = worker;
            daemon(() -> work(first));
        }
        daemon(web::ask);
        daemon(web::ask);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            // An exit within an exit waits for ever.
            exiting = false;
            check(3);
        }));
        System.out.println("READY");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null && !line.equals("quit"); ) {
            switch (line) {
                case "look" -> System.out.println(
                    "LOOK " + CALLS.get() + " " + web.answered() + " " + wrong(web) + " " + STANDS.longestMs());
                case "crowd" -> {
                    crowd();
                    System.out.println("CROWD");
                }
                case "record" -> {
                    try (Recording recording = new Recording()) {
                        recording.start();
                    }
                    System.out.println("RECORDED");
                }
                case "baseline" -> System.out.println("BASELINE " + Bytecodes.baseline());
                case "restored" -> System.out.println("CHANGED " + Bytecodes.changed());
                case "lenient" -> {
                    Scarce.lenient = true;
                    System.out.println("LENIENT");
                }
                case "strict" -> {
                    Scarce.lenient = false;
                    System.out.println("STRICT");
                }
                case "heap" -> {
                    Scarce.heap();
                    System.out.println("TAKING");
                }
                case "metaspace" -> {
                    Scarce.metaspace();
                    System.out.println("TAKING");
                }
                case "exit" -> exiting = true;
                case "halt" -> Runtime.getRuntime().halt(8);
                case "throw" -> {
                    web.close();
                    throw new IllegalStateException("thrown by main");
                }
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.out.println("WRONG " + wrong(web));
        System.exit(0);
    }

    private static long wrong(Web web) {
        return WRONG.get() + web.wrong();
    }

    private static void daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    private static void work(int first) {
        for (int n = first;; n++) {
            tryToCall(n % KINDS);
            LockSupport.parkNanos(PAUSE_NS);
        }
    }

    /** Where nothing is left, what belongs to the test fails as well. */
    private static void tryToCall(int n) {
        try {
            call(n);
        } catch (OutOfMemoryError nothingIsLeft) {
            // If that does not end, calls no longer go on, which is seen.
        }
    }

    private static void call(int n) {
        Stands.Stand stand = STANDS.begin();
        check(n);
        STANDS.end(stand);
        CALLS.incrementAndGet();
    }

    private static void crowd() {
        for (int number = 0; number < (Work.hasVirtual() ? VIRTUAL_CROWD : CROWD); number++) {
            int first = number;
            Runnable work = () -> {
                // Those kinds that take no threads, loaders and deep stacks.
                for (int n = first;; n++) {
                    LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(LONGEST_REST_NS));
                    tryToCall(n % 3 * 2);
                }
            };
            if (Work.hasVirtual()) {
                Work.startVirtual(work);
            } else {
                daemon(work);
            }
        }
    }

    private static void check(int n) {
        boolean mayFail = Scarce.lenient;
        try {
            int result = root(n);
            if (result != EXPECTED[n]) {
                wrong(n + ": " + result + " instead of " + EXPECTED[n]);
            }
        } catch (Throwable thrown) {
            if (mayFail || Scarce.lenient) {
                return;
            }
            thrown.printStackTrace();
            wrong(n + ": " + thrown);
        }
    }

    private static void wrong(String what) {
        if (WRONG.incrementAndGet() <= SAID) {
            System.err.println("WRONG " + what);
        }
    }

    static int root(int n) {
        if (exiting) {
            System.exit(7);
        }
        int sum = Work.locks(n) * 31 + Work.exceptions(n);
        sum = sum * 31 + Work.lambdas(n);
        sum = sum * 31 + Work.texts(n);
        sum = sum * 31 + Work.deep(300 + n);
        if (n % 8 == 1) {
            sum = sum * 31 + Work.threads(n);
        }
        if (n % 8 == 3) {
            sum = sum * 31 + Work.loaded(n);
        }
        if (n == 7) {
            sum = sum * 31 + Work.far(n);
        }
        if (n == 5) {
            sum = sum * 31 + Work.overflow();
        }
        return sum;
    }
}
