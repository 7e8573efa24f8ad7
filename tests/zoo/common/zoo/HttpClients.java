package zoo;

/** Two clients of an HTTP server that gives {@link Answers}. */
public final class HttpClients {
    private HttpClients() {}

    public static void main(String[] args) throws Exception {
        Clients.run(2, () -> {
            Http http = new Http(Integer.parseInt(args[0]));
            return n -> Clients.expect(Answers.of(n % 1000), http.get("/?n=" + n % 1000));
        });
    }
}
