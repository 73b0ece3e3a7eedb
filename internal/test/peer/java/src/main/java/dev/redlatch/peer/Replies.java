package dev.redlatch.peer;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/** Writes replies, each in one piece, from any thread. */
final class Replies {
    private final Gson gson = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private final PrintStream out;

    Replies(PrintStream out) {
        this.out = new PrintStream(out, false, StandardCharsets.UTF_8);
    }

    /** Says that commands are welcome. */
    void ready(Object value) {
        long now = now();
        value(0, now, value);
    }

    /** Answers the command with what it returned. */
    void value(long id, long from, Object value) {
        Map<String, Object> reply = reply(id, from);
        reply.put("value", value);
        write(reply);
    }

    /** Answers the command with what it threw. */
    void error(long id, long from, Throwable thrown) {
        Throwable cause = thrown;
        while ((cause instanceof CompletionException || cause instanceof ExecutionException) && cause.getCause() != null) {
            cause = cause.getCause();
        }
        Map<String, Object> reply = reply(id, from);
        reply.put("error", cause.getClass().getSimpleName());
        reply.put("message", String.valueOf(cause.getMessage()));
        write(reply);
    }

    private static Map<String, Object> reply(long id, long from) {
        Map<String, Object> reply = new LinkedHashMap<>();
        reply.put("id", id);
        reply.put("from", from);
        reply.put("to", now());
        return reply;
    }

    private synchronized void write(Map<String, Object> reply) {
        out.print(gson.toJson(reply) + "\n");
        out.flush();
    }

    /** Microseconds since 1970. */
    static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}
