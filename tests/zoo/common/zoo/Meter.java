package zoo;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Counts and times calls by the program's own clock: of a root, around it; of a client, from the request to the answer that was checked.
 *
 * <p>Its line is {@code meter NAME BEGUN ENDED NS MICROSECONDS,...}: calls that were begun and ended since the program's start, the time
 * of all that ended, and each one's that ended since the last line (see {@link #MOST}).
 */
public final class Meter {
    /** More durations a line are left out, but for the longest: there are meters of a hundred thousand calls a second. */
    private static final int MOST = 10_000;
    private static final List<Meter> METERS = new CopyOnWriteArrayList<>();

    private final String name;
    private long begun;
    private long ended;
    private long ns;
    private final int[] latest = new int[MOST];
    private int latestCount;

    public Meter(String name) {
        this.name = name;
        METERS.add(this);
    }

    /** A call begins; what is returned is for {@link #end}. */
    public long begin() {
        synchronized (this) {
            begun++;
        }
        return System.nanoTime();
    }

    /** The call that began then has ended. */
    public void end(long begin) {
        long took = System.nanoTime() - begin;
        synchronized (this) {
            ended++;
            ns += took;
            int us = (int) Math.min(took / 1000, Integer.MAX_VALUE);
            if (latestCount == MOST) {
                latest[MOST - 1] = Math.max(latest[MOST - 1], us);
            } else {
                latest[latestCount++] = us;
            }
        }
    }

    /** A call as a whole. */
    public <T> T time(Callable<T> call) throws Exception {
        long begin = begin();
        try {
            return call.call();
        } finally {
            end(begin);
        }
    }

    static void sayAll() {
        METERS.forEach(Meter::say);
    }

    private void say() {
        StringBuilder line = new StringBuilder();
        int[] durations;
        synchronized (this) {
            line.append("meter ").append(name).append(' ').append(begun).append(' ').append(ended).append(' ').append(ns).append(' ');
            durations = Arrays.copyOf(latest, latestCount);
            latestCount = 0;
        }
        for (int i = 0; i < durations.length; i++) {
            line.append(i == 0 ? "" : ",").append(durations[i]);
        }
        Zoo.say(line.toString());
    }
}
