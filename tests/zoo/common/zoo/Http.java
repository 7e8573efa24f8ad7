package zoo;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A connection to an HTTP server of this machine, which is kept and used for one request after another. */
public final class Http implements AutoCloseable {
    private static final int TIMEOUT_MS = 120_000;

    private final int port;
    private Socket socket;
    private InputStream input;

    public Http(int port) {
        this.port = port;
    }

    /** The answer's body. Any status but 200 is an error. */
    public String get(String path) throws IOException {
        return exchange("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }

    /** The same for a request with a body of JSON. */
    public String post(String path, String json) throws IOException {
        int length = json.getBytes(StandardCharsets.UTF_8).length;
        return exchange("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " + length
                + "\r\n\r\n" + json);
    }

    @Override
    public void close() throws IOException {
        if (socket != null) {
            socket.close();
            socket = null;
        }
    }

    private String exchange(String request) throws IOException {
        if (socket == null) {
            socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.setSoTimeout(TIMEOUT_MS);
            socket.setTcpNoDelay(true);
            input = new BufferedInputStream(socket.getInputStream());
        }
        try {
            socket.getOutputStream().write(request.getBytes(StandardCharsets.UTF_8));
            return answer();
        } catch (IOException failure) {
            close();
            throw failure;
        }
    }

    private String answer() throws IOException {
        String status = line();
        int length = 0;
        boolean isChunked = false;
        boolean isLast = false;
        for (String header = line().toLowerCase(); !header.isEmpty(); header = line().toLowerCase()) {
            if (header.startsWith("content-length:")) {
                length = Integer.parseInt(header.substring(header.indexOf(':') + 1).trim());
            }
            isChunked |= header.equals("transfer-encoding: chunked");
            isLast |= header.equals("connection: close");
        }
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        if (isChunked) {
            for (int chunk = Integer.parseInt(line(), 16); chunk > 0; chunk = Integer.parseInt(line(), 16)) {
                body.write(input.readNBytes(chunk));
                line();
            }
            line();
        } else {
            body.write(input.readNBytes(length));
        }
        if (isLast) {
            close();
        }
        if (!status.contains(" 200")) {
            throw new IOException(status + ": " + body);
        }
        return body.toString(StandardCharsets.UTF_8);
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int letter = input.read(); letter != '\n'; letter = input.read()) {
            if (letter < 0) {
                throw new EOFException("the server has closed the connection");
            }
            if (letter != '\r') {
                line.append((char) letter);
            }
        }
        return line.toString();
    }
}
