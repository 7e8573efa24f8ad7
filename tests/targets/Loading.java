import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.lang.ref.WeakReference;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntSupplier;

/**
 * What class loading can do to a call graph: a line of standard input names a scenario, which runs below {@code root}. The last
 * scenario is {@code quit}. Every scenario's result is printed.
 */
public class Loading {
    public static void main(String[] args) throws Exception {
        Base base = new Base();
        System.out.println("READY " + base.run());
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null && !line.equals("quit"); line = input.readLine()) {
            System.out.println("RESULT " + line + " " + scenario(line, base));
        }
        System.out.println("BYE");
    }

    static String scenario(String name, Base base) throws Exception {
        switch (name) {
            case "locked":
                return locked();
            case "crossed":
                return crossed();
            case "unloaded":
                return unloaded();
            default:
                return root(name, base);
        }
    }

    /** The root. */
    static String root(String name, Object subject) throws Exception {
        switch (name) {
            case "base":
                return "" + ((Base) subject).run();
            case "override":
                return "" + late().run();
            case "twins":
                return guest(new Sealed()).getAsInt() + "," + guest(new Sealed()).getAsInt();
            case "hidden":
                return "" + hidden();
            case "arrays":
                return arrays(new Base[] {new Base(), new Base()}) + "," + arrays(new Base[0]);
            case "interfaces":
                return "" + Constants.COMPUTED + new Implementing().code();
            case "broken":
                return broken();
            case "nested":
                return "" + guest(new Nesting()).getAsInt();
            case "loading":
                return "" + ((Sealed) subject).other();
            case "guest":
                return "" + ((IntSupplier) subject).getAsInt();
            default:
                throw new IllegalArgumentException(name);
        }
    }

    static Base late() {
        return new Late();
    }

    static IntSupplier guest(ClassLoader loader) throws Exception {
        Constructor<?> constructor = loader.loadClass("Guest").getDeclaredConstructor();
        constructor.setAccessible(true);
        return (IntSupplier) constructor.newInstance();
    }

    static int hidden() throws Exception {
        byte[] bytes = bytes("Hidden");
        Object hidden = MethodHandles.lookup().defineHiddenClass(bytes, true).lookupClass()
                .getDeclaredConstructor().newInstance();
        IntSupplier lambda = () -> seen();
        return ((IntSupplier) hidden).getAsInt() + lambda.getAsInt();
    }

    static int seen() {
        return 7;
    }

    static int seenByHidden() {
        return 2;
    }

    static int arrays(Base[] bases) {
        Object[] copy = bases.clone();
        int sum = copy.length + copy.getClass().getName().hashCode() * 0;
        for (Base base : bases) {
            sum += base.run();
        }
        return sum;
    }

    static String broken() throws Exception {
        byte[] bytes = bytes("Broken");
        for (int i = 0; i + 2 < bytes.length; i++) {
            // ldc, areturn: the latter becomes ireturn, which no verifier lets pass.
            if (bytes[i] == 0x12 && bytes[i + 2] == (byte) 0xb0) {
                bytes[i + 2] = (byte) 0xac;
            }
        }
        Class<?> broken = new Sealed().define("Broken", bytes);
        try {
            return broken.getDeclaredConstructor().newInstance().toString();
        } catch (VerifyError e) {
            return "VerifyError";
        }
    }

    static String unloaded() throws Exception {
        String result = "";
        for (int i = 0; i < 3; i++) {
            WeakReference<ClassLoader> loader = new WeakReference<>(new Sealed());
            result += root("guest", guest(loader.get()));
            List<byte[]> garbage = new ArrayList<>();
            while (loader.get() != null) {
                System.gc();
                garbage.add(new byte[1 << 16]);
            }
        }
        return result;
    }

    /** Another thread holds the lock of the guest's class loader until the root has returned. */
    static String locked() throws Exception {
        ClassLoader loader = new Sealed();
        IntSupplier guest = guest(loader);
        guest.getAsInt();
        CountDownLatch held = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        Thread holder = new Thread(() -> {
            synchronized (loader) {
                held.countDown();
                try {
                    done.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        });
        holder.start();
        held.await();
        String result = root("guest", guest);
        done.countDown();
        holder.join();
        return result;
    }

    /**
     * Two threads come to methods that have never run, at the same time: one of them in the lock of the class loader that the other
     * then needs, because it defines a class by it.
     */
    static String crossed() throws Exception {
        ClassLoader loader = new Sealed();
        IntSupplier guest = guest(loader);
        CountDownLatch held = new CountDownLatch(1);
        String[] results = new String[1];
        Thread holder = new Thread(() -> {
            try {
                synchronized (loader) {
                    held.countDown();
                    results[0] = root("guest", guest);
                }
            } catch (Exception e) {
                results[0] = e.toString();
            }
        });
        holder.start();
        held.await();
        String result = root("loading", loader);
        holder.join();
        return results[0] + "," + result;
    }

    static byte[] bytes(String name) throws IOException {
        try (InputStream in = Loading.class.getResourceAsStream("/" + name + ".class")) {
            return in.readAllBytes();
        }
    }
}

class Base {
    int run() {
        return 1;
    }
}

class Late extends Base {
    @Override
    int run() {
        return 1 + super.run();
    }
}

class Hidden implements IntSupplier {
    public int getAsInt() {
        return Loading.seenByHidden() + new Made().number();
    }
}

class Made {
    int number() {
        return 1;
    }
}

class Guest implements IntSupplier {
    public int getAsInt() {
        return inner() + 1;
    }

    int inner() {
        return 1;
    }
}

class Broken {
    public Broken() {}

    @Override
    public String toString() {
        return "never";
    }
}

interface Constants {
    int COMPUTED = compute();

    static int compute() {
        return 5;
    }
}

interface Marker {}

interface WithCode extends Marker {
    default int code() {
        return 3;
    }
}

class Implementing implements WithCode {}

/** Not parallel capable: the JVM takes its lock to load a class. Defines guests itself. */
class Sealed extends ClassLoader {
    Sealed() {
        super(Loading.class.getClassLoader());
    }

    Class<?> define(String name, byte[] bytes) {
        return defineClass(name, bytes, 0, bytes.length);
    }

    int other() throws Exception {
        return new Base().run() + loadClass("Hidden").getDeclaredConstructors().length;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        synchronized (this) {
            if (!name.equals("Guest") && !name.equals("Hidden")) {
                return super.loadClass(name, resolve);
            }
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            try {
                return define(name, Loading.bytes(name));
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }
}

/** Loads further classes while it loads one. */
class Nesting extends Sealed {
    Nesting() {
        super();
    }

    @Override
    Class<?> define(String name, byte[] bytes) {
        new Helper().help();
        return super.define(name, bytes);
    }
}

class Helper {
    void help() {
        new Deeper();
    }
}

class Deeper {
    static int loaded = 1;
}
