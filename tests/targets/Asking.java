import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;

/**
 * A loader that tells an object of a class of its own, which it has defined, of each name that it is asked for: as an agent does whose advice is in
 * ClassLoader.loadClass. At a line it calls the root a hundred times, at the next it ends.
 */
public final class Asking {
    /** Of the loader's own class. */
    public interface Heard {
        int of(String name);
    }

    static final class Loader extends ClassLoader {
        private Heard heard;

        Loader() {
            super(Asking.class.getClassLoader());
        }

        void define() throws Exception {
            try (InputStream file = Asking.class.getResourceAsStream("AskingHeard.class")) {
                byte[] bytes = file.readAllBytes();
                Class<?> own = defineClass("AskingHeard", bytes, 0, bytes.length);
                Constructor<?> constructor = own.getDeclaredConstructor();
                constructor.setAccessible(true);
                Heard first = (Heard) constructor.newInstance();
                // What it names is found before it is told of names.
                first.of("");
                heard = first;
            }
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (heard != null) {
                heard.of(name);
            }
            return super.loadClass(name, resolve);
        }
    }

    private static final Loader LOADER = new Loader();

    private Asking() {}

    public static void main(String[] arguments) throws Exception {
        LOADER.define();
        root(1);
        System.out.println("READY");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        while (commands.readLine() != null) {
            long sum = 0;
            for (int call = 0; call < 100; call++) {
                sum += root(call);
            }
            System.out.println("SUM " + sum);
        }
        System.out.println("FOUND " + LOADER.loadClass("java.lang.String").getName());
    }

    static int root(int call) {
        return LOADER.heard.of("x".repeat(call % 7));
    }
}

final class AskingHeard implements Asking.Heard {
    private int names;

    AskingHeard() {}

    @Override
    public int of(String name) {
        names++;
        return name.length();
    }
}
