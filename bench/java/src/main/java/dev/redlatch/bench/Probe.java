package dev.redlatch.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A connection of its own to the server, for what the benchmark itself asks. */
final class Probe implements AutoCloseable {
    private final Socket socket;
    private final BufferedReader in;

    Probe(Spec spec) throws IOException {
        int colon = spec.addr().lastIndexOf(':');
        socket = new Socket(spec.addr().substring(0, colon), Integer.parseInt(spec.addr().substring(colon + 1)));
        in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
    }

    /** How many connections there are. */
    double connections() throws IOException {
        send("CLIENT LIST\r\n");
        int length = Integer.parseInt(in.readLine().substring(1));
        double lines = 0;
        for (int read = 0; read < length; read++) {
            if (in.read() == '\n') {
                lines++;
            }
        }
        in.readLine();
        return lines;
    }

    /** How many milliseconds each of these keys has left. */
    long[] left(Iterable<String> keys, int n) throws IOException {
        StringBuilder calls = new StringBuilder();
        for (String key : keys) {
            calls.append("PTTL ").append(key).append("\r\n");
        }
        send(calls.toString());
        long[] left = new long[n];
        for (int i = 0; i < n; i++) {
            left[i] = Long.parseLong(in.readLine().substring(1));
        }
        return left;
    }

    private void send(String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
