package shop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;

/** Who bought what: on a disk that takes a millisecond for each write. */
final class AuditLog {
    private static final long WRITE_NS = 1_000_000;
    private final BlockingQueue<String> entries = new LinkedBlockingQueue<>();
    private long written;

    AuditLog() {
        Thread writer = new Thread(this::writeAll, "audit");
        writer.setDaemon(true);
        writer.start();
    }

    void append(String entry) {
        entries.add(entry);
    }

    /** Whatever has come in meanwhile is one write. */
    private void writeAll() {
        List<String> batch = new ArrayList<>();
        try {
            for (;;) {
                batch.add(entries.take());
                entries.drainTo(batch);
                write(String.join("\n", batch));
                batch.clear();
            }
        } catch (InterruptedException end) {
            // As good as an end.
        }
    }

    private void write(String entry) {
        written += entry.length();
        long end = System.nanoTime() + WRITE_NS;
        for (long left; (left = end - System.nanoTime()) > 0;) {
            LockSupport.parkNanos(left);
        }
    }
}
