package groovyprogram;

import groovy.lang.GroovyClassLoader;
import groovy.lang.GroovyObject;
import zoo.Meter;
import zoo.Zoo;

/** Calls a method of a Groovy class, which is compiled at start, again and again. */
public class Main {
    public static void main(String[] args) throws Exception {
        GroovyClassLoader loader = new GroovyClassLoader();
        Thread.currentThread().setContextClassLoader(loader);
        Class<?> type = loader.parseClass(new groovy.lang.GroovyCodeSource(Main.class.getResource("/Work.groovy")));
        GroovyObject work = (GroovyObject) type.getDeclaredConstructor().newInstance();
        Meter meter = new Meter("step");
        Object expected = work.invokeMethod("step", null).toString();
        Zoo.check(expected.toString().contains("note:1500"), "not every note has the word: " + expected);
        Zoo.ready();
        while (true) {
            Zoo.check(meter.time(() -> work.invokeMethod("step", null)).equals(expected), "another answer");
        }
    }
}
