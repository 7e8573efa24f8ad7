import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.ObjectStreamClass;
import java.io.PrintStream;
import java.io.Serializable;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * Says what its classes are, whenever it is asked:
 *
 * <pre>
 *   work              calls its methods
 *   own FILE          describes its own classes, and the traces of its calls, in a file
 *   jdk FILE PACKAGE  the same of all classes of a package of java.base, and of those below
 * </pre>
 */
final class Likeness {
    public static void main(String[] arguments) throws Exception {
        System.out.println("READY");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "work" -> Work.all();
                case "own" -> describe(words[1], own(), true);
                case "jdk" -> describe(words[1], ofJdk(words[2]), false);
                default -> throw new IllegalArgumentException(line);
            }
            System.out.println("RESULT");
        }
    }

    private static void describe(String file, List<Class<?>> types, boolean areOwn) throws IOException {
        try (PrintStream out = new PrintStream(file, "UTF-8")) {
            Describe describe = new Describe(out);
            types.forEach(describe::type);
            if (areOwn) {
                for (Class<?> type : types) {
                    if (Serializable.class.isAssignableFrom(type)) {
                        out.println(type.getName() + ": serial version: " + ObjectStreamClass.lookup(type));
                    }
                }
                Work.traces(out);
            }
        }
    }

    private static List<Class<?>> own() throws Exception {
        Path path = Path.of(Likeness.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        return below(path, path);
    }

    private static List<Class<?>> ofJdk(String name) throws Exception {
        Path base = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules/java.base");
        return below(base, base.resolve(name.replace('.', '/')));
    }

    private static List<Class<?>> below(Path root, Path from) throws Exception {
        List<Class<?>> types = new ArrayList<>();
        try (Stream<Path> files = Files.walk(from).sorted(Comparator.comparing(Path::toString))) {
            for (Path file : (Iterable<Path>) files::iterator) {
                String name = root.relativize(file).toString();
                if (name.endsWith(".class")) {
                    String type = name.substring(0, name.length() - ".class".length()).replace('/', '.');
                    types.add(Class.forName(type, false, Likeness.class.getClassLoader()));
                }
            }
        }
        return types;
    }
}

/** Calls what there is, and says what the calls' stacks are. */
final class Work {
    static void all() throws Exception {
        Everything<String, Integer> everything = new Everything<>("first", 2, "more");
        everything.local(3);
        everything.both(1);
        Everything.strict(null);
        Kind.FIRST.number(Kind.SECOND.number(1));
        new Circle(1).area(2);
        new Square(2).area(3);
        new Annotated("text").text();
        new Generic<>("key", null, 1, 2).hashCode();
        new Shape.Other().describe(new String[0], List.of());
        new Everything.Itf() { }.c(Everything.Itf.b(1));
        new Redefined().answer();
        traces(new PrintStream(PrintStream.nullOutputStream()));
    }

    static void traces(PrintStream out) {
        try {
            Everything.lines(3);
        } catch (IllegalStateException thrown) {
            thrown.printStackTrace(out);
        }
        out.println(new Redefined().walk());
        out.println("answer: " + new Redefined().answer());
    }
}

/** What is redefined while the program runs. */
final class Redefined {
    int answer() {
        return 1;
    }

    String walk() {
        return StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).walk(frames -> frames
            .limit(3)
            .map(frame -> frame.toStackTraceElement() + " " + frame.getMethodType() + " " + frame.getDeclaringClass())
            .toList()
            .toString());
    }
}
