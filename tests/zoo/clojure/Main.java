package clojureprogram;

import clojure.java.api.Clojure;
import clojure.lang.IFn;
import zoo.Meter;
import zoo.Zoo;

/** Calls a function of Clojure's again and again. */
public class Main {
    public static void main(String[] args) throws Exception {
        Clojure.var("clojure.core", "require").invoke(Clojure.read("work"));
        IFn step = Clojure.var("work", "step");
        Meter meter = new Meter("step");
        Object expected = step.invoke();
        Zoo.check(expected.toString().contains("[\"note\" 3000]"), "not every note has the word: " + expected);
        Zoo.ready();
        while (true) {
            Zoo.check(meter.time(step::invoke).equals(expected), "another answer");
        }
    }
}
