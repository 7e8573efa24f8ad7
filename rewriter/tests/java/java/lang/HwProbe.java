package java.lang;

import java.util.concurrent.atomic.AtomicLong;

/** What instrumented test classes call; says at the end how often. */
public class HwProbe {
    private static final AtomicLong ENTERED = new AtomicLong();
    private static final AtomicLong LEFT = new AtomicLong();
    private static final AtomicLong THROWN = new AtomicLong();

    public static void enter(int id) {
        if (ENTERED.getAndIncrement() == 0) {
            Runtime.getRuntime().addShutdownHook(
                    new Thread(() -> System.err.println("PROBES " + ENTERED + " " + LEFT + " " + THROWN)));
        }
    }

    public static void exit(int id) {
        LEFT.getAndIncrement();
    }

    public static void thrown(int id) {
        THROWN.getAndIncrement();
    }
}
