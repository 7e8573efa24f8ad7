package jettyprogram;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import zoo.Answers;
import zoo.Meter;
import zoo.Zoo;

/** An HTTP server on Jetty. */
public class HttpServer {
    public static void main(String[] args) throws Exception {
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("localhost");
        server.addConnector(connector);
        server.setHandler(new Answering());
        server.start();
        Zoo.ready(connector.getLocalPort());
    }

    static class Answering extends Handler.Abstract {
        private final Meter meter = new Meter("answer");

        @Override
        public boolean handle(Request request, Response response, Callback callback) throws Exception {
            return meter.time(() -> {
                int n = Integer.parseInt(Request.extractQueryParameters(request).getValue("n"));
                byte[] body = Answers.of(n).getBytes(StandardCharsets.UTF_8);
                response.getHeaders().put("Content-Type", "application/json");
                response.write(true, ByteBuffer.wrap(body), callback);
                return true;
            });
        }
    }
}
