package java.lang;

import static java.lang.HeadwaterV1.MAX_PAYLOAD;

import jdk.internal.misc.Unsafe;

/** What a probe pair costs, timed on an empty method. */
final class HeadwaterV1Calibration {
    private static final int NO_METHOD = -1;

    private static final Unsafe U = Unsafe.getUnsafe();

    /** Keeps the calibration's loops from being optimised away. */
    private static int work;

    private HeadwaterV1Calibration() {}

    /**
     * Makes the clock ready, and times the probes with it. JFluid 5.3: what a probe pair costs between its own timestamps (inner)
     * and outside them (outer), in compiled code.
     *
     * <p>Ends early, with figures that mean nothing, when nobody waits for them any more.
     *
     * @return inner, outer, what a pair costs outside the root's context, what a control invocation of it takes, the standard
     *     deviations of the first two, and what it takes to tell of an object, if these are counted; in ns
     */
    static double[] calibrate() {
        final int rounds = 64;
        final int pairs = HeadwaterV1Chunks.bytes / 16;
        final int controls = 256;
        final long shortest = 200_000_000;
        final long longest = 1_500_000_000;
        HeadwaterV1Clock.choose(HeadwaterV1Chunks.segment);
        HeadwaterV1Thread self = HeadwaterV1Thread.ofProgram(HeadwaterV1Threads.currentTid(), false);
        self.calibrates = true;
        self.depth = 1;
        self.root = NO_METHOD;
        synchronized (HeadwaterV1.LOCK) {
            HeadwaterV1Threads.insert(self);
        }
        self.owner = Thread.currentThread();
        HeadwaterV1Threads.use(self);
        HeadwaterV1.mark(0, HeadwaterV1.FLAG_ENTERED);
        // The real chunks, as many as threads go through when the tool keeps up, but hidden from the tool.
        long[] hidden = HeadwaterV1Chunks.hide();
        double[] inner = new double[rounds];
        double[] outer = new double[rounds];
        double[] outside = new double[rounds];
        double[] control = new double[rounds];
        double[] object = new double[rounds];
        if (HeadwaterV1Counters.counted()) {
            HeadwaterV1Counters.goOn(self);
        }
        long start = System.nanoTime();
        long fastest = Long.MAX_VALUE;
        long improved = start;
        // The last rounds count. By then the loops are compiled: they have not become faster for twice as long as they took to
        // become so. An interpreter alone gets through at least the rounds.
        for (int round = 0;; round++) {
            long now = System.nanoTime();
            long elapsed = now - start;
            boolean steady = elapsed > shortest && now - improved > 2 * (improved - start);
            // In an interpreter a round may take a tenth of a second.
            if (round >= rounds && (steady || elapsed > longest) || !HeadwaterV1.isWanted()) {
                break;
            }
            long words = hidden[round % hidden.length];
            self.position = words;
            self.end = words + HeadwaterV1Chunks.bytes;
            HeadwaterV1Clock.rebase(self);
            long before = HeadwaterV1Clock.stopwatch();
            probedRound(pairs);
            long after = HeadwaterV1Clock.stopwatch();
            self.depth = 0;
            probedRound(pairs);
            long afterOutside = HeadwaterV1Clock.stopwatch();
            self.depth = 1;
            if (afterOutside - before < fastest - (fastest >> 5)) {
                fastest = afterOutside - before;
                improved = System.nanoTime();
            }
            int slot = round % rounds;
            // The loop around the pairs costs nothing beside them: a processor does both at once.
            double both = (double) (after - before) / pairs;
            // A coarse clock does not move within a pair: half of the pair is taken to lie before the reading.
            inner[slot] = HeadwaterV1Clock.isCoarse() ? both / 2 : (double) between(words, self.position) / pairs;
            outer[slot] = Math.max(0, both - inner[slot]);
            outside[slot] = (double) (afterOutside - after) / pairs;
            self.position = words;
            self.depth = 0;
            HeadwaterV1Session.controlAll(true);
            probedRound(controls);
            HeadwaterV1Session.controlAll(false);
            self.root = NO_METHOD;
            self.depth = 1;
            control[slot] = (double) durations(words, self.position) / controls;
            if (HeadwaterV1Sites.areCounted()) {
                object[slot] = (double) objects(self, words, pairs) / pairs;
            }
        }
        self.owner = null;
        self.dead = true;
        self.depth = 0;
        HeadwaterV1Chunks.show(hidden);
        return new double[] {
            quietMean(inner), quietMean(outer), quietMean(outside), quietMean(control), quietDeviation(inner), quietDeviation(outer),
            quietMean(object)
        };
    }

    /** Nanoseconds between entries and their exits, of pairs that lie one behind the other. */
    private static long between(long words, long end) {
        long sum = 0;
        for (long at = words; at < end; at += 16) {
            sum += (U.getLong(at + 8) & MAX_PAYLOAD) - (U.getLong(at) & MAX_PAYLOAD);
        }
        return sum;
    }

    /** Nanoseconds that these control invocations took. */
    private static long durations(long words, long end) {
        long sum = 0;
        for (long at = words; at < end; at += 8) {
            sum += U.getLong(at) & MAX_PAYLOAD;
        }
        return sum;
    }

    /** Nanoseconds that it takes to tell of so many objects. */
    private static long objects(HeadwaterV1Thread self, long words, int count) {
        self.position = words;
        // What has no chunk tells nothing.
        self.head = words;
        long start = HeadwaterV1Clock.stopwatch();
        madeRound(count);
        long end = HeadwaterV1Clock.stopwatch();
        self.head = 0;
        return end - start;
    }

    private static void madeRound(int count) {
        for (int i = 0; i < count; i++) {
            HeadwaterV1.allocated(i, HeadwaterV1Sites.BYTE, 0);
        }
    }

    private static void probedRound(int pairs) {
        for (int i = 0; i < pairs; i++) {
            probed(i);
        }
    }

    /** The shape that the rewriter gives to methods. */
    private static void probed(int i) {
        Object token = HeadwaterV1.enter(0);
        try {
            work = i;
        } catch (Throwable any) {
            HeadwaterV1.thrown(token, 0);
            throw any;
        }
        HeadwaterV1.exit(token, 0);
    }

    /** Mean of the lower half: what other programs on the machine add is not the probe's. Sorts its argument. */
    private static double quietMean(double[] values) {
        sort(values);
        double sum = 0;
        for (int i = 0; i < values.length / 2; i++) {
            sum += values[i];
        }
        return sum / (values.length / 2);
    }

    /** Standard deviation of the lower half of sorted values. */
    private static double quietDeviation(double[] values) {
        double mean = quietMean(values);
        double sum = 0;
        for (int i = 0; i < values.length / 2; i++) {
            sum += (values[i] - mean) * (values[i] - mean);
        }
        return Math.sqrt(sum / (values.length / 2));
    }

    private static void sort(double[] values) {
        for (int i = 1; i < values.length; i++) {
            double value = values[i];
            int at = i;
            for (; at > 0 && values[at - 1] > value; at--) {
                values[at] = values[at - 1];
            }
            values[at] = value;
        }
    }
}
