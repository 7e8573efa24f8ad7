package shop;

import java.util.concurrent.locks.LockSupport;

/** Who bought what: on a disk that takes a millisecond for each write. */
final class AuditLog {
    private static final long WRITE_NS = 1_000_000;
    private long written;

    void append(String entry) {
        synchronized (this) {
            write(entry);
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
