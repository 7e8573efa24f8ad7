package zoo;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What a program of the zoo and its harness say to each other.
 *
 * <p>The program prints lines that begin with {@code ZOO}: {@code ready PID [PORT]} once, {@code wrong MESSAGE} for each result that is
 * not what it should be, and once a second what each {@link Meter} has counted. Everything else on its output is for people.
 *
 * <p>The harness writes commands, one a line: {@code say N} asks for the meters at once, {@code reflect N CLASS...} for what classes are
 * to reflection, others are the program's own (see {@link #onCommand}). Each is answered by {@code said N}, after what it asked for. The
 * program ends with its standard input.
 */
public final class Zoo {
    private static final long TICK_MS = 1000;
    /** Kept, because programs replace System.out. */
    private static final PrintStream OUT = System.out;
    private static final Map<String, Runnable> COMMANDS = new ConcurrentHashMap<>();

    private Zoo() {}

    /** Says that the program is at work, and begins to report. Classes are looked up by the calling thread's context class loader. */
    public static void ready() {
        ready("");
    }

    /** The same for a server, whose client is told this port. */
    public static void ready(int port) {
        ready(" " + port);
    }

    private static void ready(String port) {
        int idle = Integer.parseInt(System.getenv().getOrDefault("ZOO_THREADS", "0"));
        for (int i = 0; i < idle; i++) {
            daemon("zoo-idle-" + i, Zoo::idle);
        }
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        daemon("zoo-commands", () -> obey(loader));
        daemon("zoo-reports", Zoo::report);
        say("ready " + ProcessHandle.current().pid() + port);
    }

    /** A result is not what it should be. */
    public static void wrong(String message) {
        say("wrong " + message.replace('\n', ' '));
    }

    /** Complains unless it holds. */
    public static void check(boolean holds, String otherwise) {
        if (!holds) {
            wrong(otherwise);
        }
    }

    /** What the program does when the harness says this word. */
    public static void onCommand(String word, Runnable action) {
        COMMANDS.put(word, action);
    }

    static void say(String line) {
        OUT.println("ZOO " + line);
        OUT.flush();
    }

    /** As a thread of a pool that has nothing to do. */
    private static void idle() {
        try {
            while (true) {
                Thread.sleep(TICK_MS);
            }
        } catch (InterruptedException end) {
            // Nobody interrupts it but an end of the program.
        }
    }

    private static void report() {
        try {
            while (true) {
                Thread.sleep(TICK_MS);
                Meter.sayAll();
            }
        } catch (InterruptedException end) {
            // Nobody interrupts it but an end of the program.
        }
    }

    private static void obey(ClassLoader loader) {
        try (BufferedReader commands = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                String[] words = line.split(" ");
                switch (words[0]) {
                    case "say" -> Meter.sayAll();
                    case "reflect" -> {
                        for (int i = 2; i < words.length; i++) {
                            say("reflected " + words[i] + " " + Reflected.digest(words[i], loader));
                        }
                    }
                    default -> COMMANDS.get(words[0]).run();
                }
                say("said " + words[1]);
            }
        } catch (IOException end) {
            // As good as an end.
        }
        Runtime.getRuntime().halt(0);
    }

    private static void daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }
}
