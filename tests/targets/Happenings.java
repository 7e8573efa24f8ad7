import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.ref.WeakReference;

/** Does what it is told to, one thing at a time, each of which the JVM has an event for. */
public class Happenings {
    static final Guard MONITOR = new Guard();
    static volatile int sum;
    static WeakReference<ClassLoader> plugins;

    static final class Guard {}

    static final class Late {
        static int value = 7;
    }

    /** Of a loader of its own. */
    public static final class Plugin {}

    static final class Plugins extends ClassLoader {
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.equals("Happenings$Plugin") ? define(name) : super.loadClass(name, resolve);
        }

        Class<?> define(String name) throws ClassNotFoundException {
            try (InputStream in = Happenings.class.getResourceAsStream(name + ".class")) {
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    static int useLate() {
        return Late.value;
    }

    static void plugIn() throws Exception {
        ClassLoader loader = new Plugins();
        plugins = new WeakReference<>(loader);
        Class.forName("Happenings$Plugin", true, loader);
    }

    static void unplug() {
        while (plugins.get() != null) {
            System.gc();
        }
        // Classes are unloaded by the collection behind the one that finds their loader gone, at the latest.
        System.gc();
    }

    static void begin() throws Exception {
        Thread thread = new Thread(() -> sum++, "begun");
        thread.setDaemon(true);
        thread.start();
        thread.join();
    }

    static void enter() {
        synchronized (MONITOR) {
            sum++;
        }
    }

    static void hold() throws Exception {
        Thread waiter = new Thread(Happenings::enter, "waiter");
        // Its class is not to be loaded while the other one begins to wait: what is seen of this stack has only so many frames.
        Thread.State blocked = Thread.State.BLOCKED;
        synchronized (MONITOR) {
            waiter.start();
            while (waiter.getState() != blocked) {
                Thread.onSpinWait();
            }
            Thread.sleep(20);
        }
        waiter.join();
    }

    static int hot(int n) {
        return n * 31 + sum;
    }

    static void heat() {
        for (int n = 0; n < 200_000; n++) {
            sum = hot(n);
        }
    }

    static void root() throws Exception {
        begin();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
            switch (line) {
                case "gc":
                    System.gc();
                    break;
                case "late":
                    sum += useLate();
                    break;
                case "plugin":
                    plugIn();
                    unplug();
                    break;
                case "thread":
                    root();
                    break;
                case "monitor":
                    hold();
                    break;
                case "hot":
                    heat();
                    break;
                default:
                    throw new IllegalArgumentException(line);
            }
            System.out.println("DONE " + line);
        }
    }
}
