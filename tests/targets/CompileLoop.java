import java.io.File;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Compiles Java sources over and over in one JVM and says once a second how often. Arguments: an output directory, then
 * directories whose sources are compiled. Ends with its standard input.
 */
public class CompileLoop {
    public static void main(String[] args) throws Exception {
        List<File> sources = new ArrayList<>();
        for (String directory : Arrays.copyOfRange(args, 1, args.length)) {
            try (Stream<Path> files = Files.list(Paths.get(directory))) {
                sources.addAll(files.filter(file -> file.toString().endsWith(".java")).sorted()
                        .map(Path::toFile).collect(Collectors.toList()));
            }
        }
        Thread reader = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    // Only the end is of interest.
                }
            } catch (java.io.IOException end) {
                // As good as an end.
            }
            System.exit(0);
        });
        reader.setDaemon(true);
        reader.start();

        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<String> options = Arrays.asList("-nowarn", "-proc:none", "-d", args[0]);
        System.out.println("READY " + sources.size());
        int compiled = 0;
        long start = System.nanoTime();
        while (true) {
            StringWriter messages = new StringWriter();
            try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
                boolean success = compiler
                        .getTask(messages, files, null, options, null, files.getJavaFileObjectsFromFiles(sources)).call();
                if (!success) {
                    throw new IllegalStateException(messages.toString());
                }
            }
            compiled++;
            long now = System.nanoTime();
            if (now - start >= 1_000_000_000L) {
                System.out.printf("RATE %.2f%n", compiled * 1e9 / (now - start));
                compiled = 0;
                start = now;
            }
        }
    }
}
