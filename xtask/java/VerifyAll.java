import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Links classes, that is, has them verified, without initialising them.
 *
 * <pre>
 * VerifyAll REPORT EVERY image             every class of the modules of the running JVM
 * VerifyAll REPORT EVERY jars LIST LIBS    every class of the jars or directories that the file LIST names, each with
 *                                          a loader of its own, which finds other classes in those of the file LIBS
 * </pre>
 *
 * Of each jar or module every EVERY-th class is taken. REPORT gets a line a failure, {@code unit class error: message};
 * the last line of standard output is {@code VERIFIED classes failed rejected}, where rejected are those with a VerifyError
 * or a ClassFormatError.
 */
public class VerifyAll {
    private interface Finder {
        Class<?> find(String name) throws ClassNotFoundException;
    }

    private final PrintStream report;
    private final int every;
    private int classes;
    private int failed;
    private int rejected;

    private VerifyAll(PrintStream report, int every) {
        this.report = report;
        this.every = every;
    }

    public static void main(String[] args) throws IOException {
        try (PrintStream report = new PrintStream(args[0], "UTF-8")) {
            VerifyAll verification = new VerifyAll(report, Integer.parseInt(args[1]));
            if (args[2].equals("image")) {
                verification.image();
            } else {
                List<URL> libraries = new ArrayList<>();
                // As long as one has them open, no loader reads their directories again.
                List<JarFile> open = new ArrayList<>();
                for (String library : Files.readAllLines(Path.of(args[4]))) {
                    libraries.add(new File(library).toURI().toURL());
                    open.add(new JarFile(library));
                }
                for (String jar : Files.readAllLines(Path.of(args[3]))) {
                    verification.jar(new File(jar), libraries);
                }
                for (JarFile library : open) {
                    library.close();
                }
            }
            System.out.println(
                    "VERIFIED " + verification.classes + " " + verification.failed + " " + verification.rejected);
        }
    }

    private void image() throws IOException {
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules");
        List<Module> sorted = new ArrayList<>(ModuleLayer.boot().modules());
        sorted.sort((one, other) -> one.getName().compareTo(other.getName()));
        for (Module module : sorted) {
            Path root = modules.resolve(module.getName());
            all(module.getName(), below(root), name -> {
                Class<?> found = Class.forName(module, name);
                if (found == null) {
                    throw new ClassNotFoundException(name);
                }
                return found;
            });
        }
    }

    private static List<String> below(Path root) throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            return files.map(file -> root.relativize(file).toString()).collect(Collectors.toList());
        }
    }

    private void jar(File jar, List<URL> libraries) throws IOException {
        List<URL> path = new ArrayList<>();
        path.add(jar.toURI().toURL());
        path.addAll(libraries);
        List<String> names;
        if (jar.isDirectory()) {
            names = below(jar.toPath());
        } else {
            try (JarFile file = new JarFile(jar)) {
                names = file.stream().map(JarEntry::getName).collect(Collectors.toList());
            }
        }
        ClassLoader parent = ClassLoader.getPlatformClassLoader();
        try (URLClassLoader loader = new URLClassLoader(path.toArray(new URL[0]), parent)) {
            all(jar.getName(), names, name -> Class.forName(name, false, loader));
        }
    }

    private void all(String unit, List<String> files, Finder finder) {
        Collections.sort(files);
        int number = 0;
        for (String file : files) {
            boolean wanted = file.endsWith(".class") && !file.endsWith("-info.class") && !file.startsWith("META-INF/");
            if (wanted && number++ % every == 0) {
                String name = file.substring(0, file.length() - ".class".length()).replace('/', '.');
                classes++;
                try {
                    // Asking for the methods links the class, without initialising it.
                    finder.find(name).getDeclaredMethods();
                } catch (VerifyError | ClassFormatError error) {
                    rejected++;
                    failure(unit, name, error);
                } catch (LinkageError | ClassNotFoundException | RuntimeException error) {
                    failure(unit, name, error);
                }
            }
        }
    }

    private void failure(String unit, String name, Throwable error) {
        failed++;
        String message = String.valueOf(error.getMessage()).replace('\n', ' ');
        report.println(unit + " " + name + " " + error.getClass().getName() + ": " + message);
    }
}
