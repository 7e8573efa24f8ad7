package felixprogram;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.zip.ZipEntry;
import org.apache.felix.framework.FrameworkFactory;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleContext;
import org.osgi.framework.ServiceReference;
import zoo.Meter;
import zoo.Zoo;

/** Felix: a bundle with classes of its own loader offers a service, which is looked up and called again and again. */
public class Framework {
    public static void main(String[] args) throws Exception {
        var framework = new FrameworkFactory().newFramework(Map.of(
                "org.osgi.framework.storage", Files.createTempDirectory("felix").toString(),
                "org.osgi.framework.storage.clean", "onFirstInit"));
        framework.start();
        BundleContext context = framework.getBundleContext();
        Bundle bundle = context.installBundle("memory:words", bundle());
        bundle.start();
        Thread.currentThread().setContextClassLoader(bundle.loadClass("felixprogram.bundle.Words").getClassLoader());
        Meter meter = new Meter("step");
        Framework driver = new Framework();
        String expected = driver.step(context);
        Zoo.check(expected.startsWith("600 "), "words are missing: " + expected);
        Zoo.ready();
        while (true) {
            Zoo.check(meter.time(() -> driver.step(context)).equals(expected), "another answer");
        }
    }

    String step(BundleContext context) throws Exception {
        ServiceReference<?> reference = context.getAllServiceReferences(Callable.class.getName(), "(kind=words)")[0];
        Object answer = ((Callable<?>) context.getService(reference)).call();
        context.ungetService(reference);
        return answer.toString();
    }

    private static InputStream bundle() throws Exception {
        Manifest manifest = new Manifest();
        Attributes attributes = manifest.getMainAttributes();
        attributes.put(Attributes.Name.MANIFEST_VERSION, "1.0");
        attributes.putValue("Bundle-ManifestVersion", "2");
        attributes.putValue("Bundle-SymbolicName", "words");
        attributes.putValue("Bundle-Activator", "felixprogram.bundle.Activator");
        attributes.putValue("Import-Package", "org.osgi.framework");
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (JarOutputStream jar = new JarOutputStream(bytes, manifest)) {
            for (String name : List.of("Activator", "Words")) {
                String path = "felixprogram/bundle/" + name + ".class";
                jar.putNextEntry(new ZipEntry(path));
                try (InputStream original = Framework.class.getResourceAsStream("/" + path)) {
                    original.transferTo(jar);
                }
            }
        }
        return new ByteArrayInputStream(bytes.toByteArray());
    }
}
