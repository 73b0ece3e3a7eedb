package dev.redlatch.bench;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonStreamParser;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Redisson as a contestant: the Java side of the conversation that the Go package
 * bench/internal/work describes, and the same work, with threads for goroutines. A
 * JVM is kept for many measurements, so that it is warm.
 */
public final class Main {
    /** One measurement; the Go type of this name says what the fields are. */
    record Spec(
            String kind,
            String contestant,
            String addr,
            String key,
            int goroutines,
            int reads,
            int permits,
            long warmup,
            long duration) {}

    private static final Gson GSON = new Gson();

    private final JsonStreamParser in =
            new JsonStreamParser(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final Clients clients = new Clients();

    private Main() {}

    public static void main(String[] args) throws Exception {
        Main main = new Main();
        while (main.in.hasNext()) {
            main.measure(GSON.fromJson(main.in.next(), Spec.class));
        }
        // Redisson's threads would keep the process, and nothing is left to say.
        System.exit(0);
    }

    private void measure(Spec spec) throws Exception {
        Jobs.Job job;
        try {
            job = open(spec);
        } catch (Exception e) {
            say(Map.of("event", "done", "error", e.toString()));
            return;
        }
        Thread.sleep(spec.warmup());
        say(Map.of("event", "ready"));
        order("go");
        job.begin();
        Thread.sleep(spec.duration());
        say(Map.of("event", "measured", "values", job.end()));
        order("stop");
        try {
            job.close();
            say(Map.of("event", "done"));
        } catch (Exception e) {
            say(Map.of("event", "done", "error", e.toString()));
        }
    }

    private Jobs.Job open(Spec spec) throws Exception {
        return switch (spec.kind()) {
            case "pairs", "turns" -> new Jobs.Turns(clients, spec);
            case "wakeup" -> new Jobs.Wakeups(clients, spec);
            case "idle" -> new Jobs.Idle(clients, spec);
            case "watchdog" -> new Jobs.Renewals(clients, spec);
            default -> throw new IllegalArgumentException("no kind " + spec.kind());
        };
    }

    private void say(Map<String, ?> event) {
        out.println(GSON.toJson(event));
    }

    private void order(String want) {
        JsonElement got = in.next();
        if (!got.getAsString().equals(want)) {
            throw new IllegalStateException(got + " instead of " + want);
        }
    }
}
