import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** A server, and clients that know what it has to answer. */
final class Web {
    /** So many wrong answers are told. */
    private static final int SAID = 20;
    private static final long PAUSE_NS = 2_000_000;
    private static final int KINDS = 10;
    private final HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    private final String[] expected = new String[KINDS];
    private final AtomicLong answered = new AtomicLong();
    private final AtomicLong wrong = new AtomicLong();
    private final Stands stands;
    private volatile boolean closed;

    Web(Stands stands) throws IOException {
        this.stands = stands;
        for (int n = 0; n < KINDS; n++) {
            expected[n] = answer(n);
        }
        ExecutorService threads = Executors.newFixedThreadPool(2, work -> {
            Thread thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        });
        server.setExecutor(threads);
        server.createContext("/", Web::handle);
        server.start();
    }

    void close() {
        closed = true;
        server.stop(0);
    }

    long answered() {
        return answered.get();
    }

    long wrong() {
        return wrong.get();
    }

    static void handle(HttpExchange exchange) throws IOException {
        byte[] text = answer(Integer.parseInt(exchange.getRequestURI().getQuery())).getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, text.length);
        exchange.getResponseBody().write(text);
        exchange.close();
    }

    private static String answer(int n) {
        return "answer " + Work.texts(n) + " " + Work.lambdas(n);
    }

    /** One client. */
    void ask() {
        for (int n = 0; !closed; n = (n + 1) % KINDS) {
            boolean mayFail = Scarce.lenient;
            Stands.Stand stand = stands.begin();
            try {
                String text = get("http://localhost:" + server.getAddress().getPort() + "/?" + n);
                if (!text.equals(expected[n]) && !closed) {
                    wrong(n + ": " + text);
                }
            } catch (Throwable thrown) {
                if (closed) {
                    return;
                }
                if (!mayFail && !Scarce.lenient) {
                    wrong(n + ": " + thrown);
                }
            }
            stands.end(stand);
            answered.incrementAndGet();
            LockSupport.parkNanos(PAUSE_NS);
        }
    }

    private void wrong(String what) {
        if (wrong.incrementAndGet() <= SAID) {
            System.err.println("WRONG answer to " + what);
        }
    }

    private static String get(String address) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) new URL(address).openConnection();
        try (InputStream in = connection.getInputStream()) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
