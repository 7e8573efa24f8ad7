import java.util.ArrayList;
import java.util.List;

/** Takes all of something, keeps it for a while, and gives it back; meanwhile work may fail, but not be wrong. */
final class Scarce {
    /** Work that is under way while this holds, or has begun while it did, may end by an error. */
    static volatile boolean lenient;
    private static final int LARGE = 1 << 20;
    private static final int SMALL = 1 << 13;
    private static final long KEPT_MS = 3000;
    private static final byte[] LOADED = Work.bytes("Loaded.class");
    private static volatile Object sink;

    private Scarce() {}

    /** The heap, but for what the collector finds. */
    static void heap() {
        during(() -> {
            List<byte[]> taken = new ArrayList<>();
            long end = System.nanoTime() + KEPT_MS * 1_000_000;
            for (int size = LARGE; System.nanoTime() < end; ) {
                try {
                    taken.add(new byte[size]);
                } catch (OutOfMemoryError none) {
                    size = Math.max(size / 2, SMALL);
                    pause();
                }
                sink = taken;
            }
            sink = null;
        });
    }

    /** All of the metaspace: to be started with a limit to it. */
    static void metaspace() {
        during(() -> {
            List<Class<?>> taken = new ArrayList<>();
            long end = System.nanoTime() + KEPT_MS * 1_000_000;
            while (System.nanoTime() < end) {
                try {
                    taken.add(new Another().define());
                } catch (OutOfMemoryError none) {
                    pause();
                }
            }
        });
        System.gc();
    }

    private static void during(Runnable work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (OutOfMemoryError alsoHere) {
                // It gives back what it has.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void pause() {
        try {
            Thread.sleep(5);
        } catch (InterruptedException nobodyDoes) {
            throw new AssertionError(nobodyDoes);
        }
    }

    private static final class Another extends ClassLoader {
        Another() {
            super(Work.class.getClassLoader());
        }

        Class<?> define() {
            return defineClass("Loaded", LOADED, 0, LOADED.length);
        }
    }
}
