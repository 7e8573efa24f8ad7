package felixprogram.bundle;

import java.util.Dictionary;
import java.util.Hashtable;
import java.util.concurrent.Callable;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** Registers the bundle's service. */
public class Activator implements BundleActivator {
    @Override
    public void start(BundleContext context) {
        Dictionary<String, Object> properties = new Hashtable<>();
        properties.put("kind", "words");
        context.registerService(Callable.class.getName(), new Words(), properties);
    }

    @Override
    public void stop(BundleContext context) {}
}
