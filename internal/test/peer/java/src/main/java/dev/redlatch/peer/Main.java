package dev.redlatch.peer;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Reads commands until stdin ends. */
public final class Main {
    private Main() {}

    /** Runs the peer; there are no arguments. */
    public static void main(String[] args) throws IOException {
        Replies replies = new Replies(System.out);
        // What a library prints must not get between the replies.
        System.setOut(System.err);
        Peer peer = new Peer(replies);
        replies.ready(Map.of("version", Settings.version(), "pid", ProcessHandle.current().pid()));

        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            peer.accept(Request.parse(line));
        }
        // Whoever drove this is gone: nothing of it may stay.
        Runtime.getRuntime().halt(0);
    }
}
