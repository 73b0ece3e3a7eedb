package dev.redlatch.bench;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonStreamParser;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Does what stdin asks for until it ends. */
public final class Main {
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
        Job job;
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

    private Job open(Spec spec) throws Exception {
        return switch (spec.kind()) {
            case "pairs", "turns" -> new Turns(clients, spec);
            case "wakeup" -> new Wakeups(clients, spec);
            case "idle" -> new Idle(clients, spec);
            case "watchdog" -> new Renewals(clients, spec);
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
