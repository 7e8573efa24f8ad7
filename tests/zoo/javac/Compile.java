package javacprogram;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.StringWriter;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import zoo.Meter;
import zoo.Zoo;

/** The JDK's own compiler, which compiles generated classes again and again; with an argument, from the command {@code begin} on. */
public class Compile {
    private static final int CLASSES = 10;

    private final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    private final List<JavaFileObject> sources = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Compile compile = new Compile();
        Meter meter = new Meter("step");
        if (args.length > 0) {
            CountDownLatch begun = new CountDownLatch(1);
            Zoo.onCommand("begin", begun::countDown);
            Zoo.ready();
            begun.await();
        }
        int expected = meter.time(compile::step);
        Zoo.check(expected > 0, "no class files");
        if (args.length == 0) {
            Zoo.ready();
        }
        while (true) {
            Zoo.check(meter.time(compile::step) == expected, "other class files");
        }
    }

    Compile() {
        for (int i = 0; i < CLASSES; i++) {
            String text = """
                    package generated;
                    import java.util.*;
                    import java.util.function.*;
                    import java.util.stream.*;
                    public class C%1$d<T extends Comparable<T>> {
                        private final Map<String, List<T>> values = new TreeMap<>();
                        enum Kind { A, B, C }
                        record Pair<A, B>(A first, B second) {}
                        public Optional<T> best(Predicate<? super T> filter) {
                            return values.values().stream().flatMap(List::stream).filter(filter).max(Comparator.naturalOrder());
                        }
                        public Map<Kind, Long> kinds(List<String> names) {
                            return names.stream().map(n -> new Pair<>(n, kind(n))).collect(Collectors.groupingBy(Pair::second, Collectors.counting()));
                        }
                        static Kind kind(String name) {
                            return switch (name.length() %% 3) { case 0 -> Kind.A; case 1 -> Kind.B; default -> Kind.C; };
                        }
                        int sum(int limit) {
                            int sum = 0;
                            for (int i = 0; i < limit; i++) { if (i %% 3 == 0) { sum += i; } else { sum ^= limit << i; } }
                            try { return C%2$d.kind("x" + sum).ordinal(); } finally { values.clear(); }
                        }
                    }
                    """.formatted(i, (i + 1) % CLASSES);
            sources.add(new SimpleJavaFileObject(URI.create("string:///generated/C" + i + ".java"), JavaFileObject.Kind.SOURCE) {
                @Override
                public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                    return text;
                }
            });
        }
    }

    /** Compiles all; how many bytes the class files have. */
    int step() throws Exception {
        StringWriter messages = new StringWriter();
        List<ByteArrayOutputStream> classes = new ArrayList<>();
        try (JavaFileManager files = new ForwardingJavaFileManager<>(compiler.getStandardFileManager(null, null, null)) {
            @Override
            public JavaFileObject getJavaFileForOutput(Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
                return new SimpleJavaFileObject(URI.create("memory:///" + name.replace('.', '/') + ".class"), kind) {
                    @Override
                    public OutputStream openOutputStream() {
                        classes.add(new ByteArrayOutputStream());
                        return classes.get(classes.size() - 1);
                    }
                };
            }
        }) {
            boolean success = compiler.getTask(messages, files, null, List.of("-proc:none", "--release", "17"), null, sources).call();
            Zoo.check(success, "javac failed: " + messages);
        }
        return classes.stream().mapToInt(ByteArrayOutputStream::size).sum();
    }
}
