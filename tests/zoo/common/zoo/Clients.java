package zoo;

/** A server's clients: threads, each of which asks again as soon as its answer has come and was checked. */
public final class Clients {
    private static final long PAUSE_MS = 100;

    private Clients() {}

    /** What a thread asks. */
    public interface Conversation {
        /** Asks the n-th question and checks the answer. */
        void ask(int n) throws Exception;
    }

    /** Begins a thread's conversation. */
    public interface Opening {
        Conversation open() throws Exception;
    }

    /** Complains unless the answer is this. */
    public static void expect(String expected, String answer) {
        if (!expected.equals(answer)) {
            throw new IllegalStateException("`" + answer + "` instead of `" + expected + "`");
        }
    }

    /** Starts so many threads and reports on them by the meter `client`; does not return. */
    public static void run(int threads, Opening opening) throws Exception {
        Meter meter = new Meter("client");
        for (int i = 0; i < threads; i++) {
            Conversation conversation = opening.open();
            int first = i;
            new Thread(() -> talk(conversation, first, threads, meter), "client-" + i).start();
        }
        Zoo.ready();
        Thread.currentThread().join();
    }

    private static void talk(Conversation conversation, int first, int step, Meter meter) {
        for (int n = first;; n += step) {
            long begin = meter.begin();
            try {
                conversation.ask(n);
            } catch (Exception failure) {
                Zoo.wrong(failure.toString());
                pause();
            }
            meter.end(begin);
        }
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MS);
        } catch (InterruptedException end) {
            // Nobody interrupts it.
        }
    }
}
