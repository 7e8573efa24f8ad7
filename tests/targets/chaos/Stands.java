import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** How long operations take: the longest since it was last asked for, with those that are not at their end. */
final class Stands {
    private final Set<Stand> open = ConcurrentHashMap.newKeySet();
    private final AtomicLong longest = new AtomicLong();

    /** An operation that was begun. */
    static final class Stand {
        final long begun = System.nanoTime();
    }

    Stand begin() {
        Stand stand = new Stand();
        open.add(stand);
        return stand;
    }

    void end(Stand stand) {
        open.remove(stand);
        longest.accumulateAndGet(System.nanoTime() - stand.begun, Math::max);
    }

    long longestMs() {
        long now = System.nanoTime();
        long most = longest.getAndSet(0);
        for (Stand stand : open) {
            most = Math.max(most, now - stand.begun);
        }
        return most / 1_000_000;
    }
}
