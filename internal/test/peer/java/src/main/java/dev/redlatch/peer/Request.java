package dev.redlatch.peer;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** One command. A field that is needed and missing is an IllegalArgumentException. */
record Request(JsonObject fields) {

    static Request parse(String line) {
        return new Request(JsonParser.parseString(line).getAsJsonObject());
    }

    /** The same command, about a lock of this kind. */
    Request kind(String kind) {
        JsonObject other = fields.deepCopy();
        other.addProperty("kind", kind);
        return new Request(other);
    }

    long id() {
        return number("id");
    }

    String op() {
        return text("op");
    }

    boolean has(String field) {
        return fields.has(field) && !fields.get(field).isJsonNull();
    }

    String text(String field) {
        return need(field).getAsString();
    }

    String text(String field, String otherwise) {
        return has(field) ? text(field) : otherwise;
    }

    long number(String field) {
        return need(field).getAsLong();
    }

    long number(String field, long otherwise) {
        return has(field) ? number(field) : otherwise;
    }

    /** The elements of a list, none when the field is not there. */
    List<JsonElement> list(String field) {
        return has(field) ? need(field).getAsJsonArray().asList() : List.of();
    }

    List<String> texts(String field) {
        List<String> all = new ArrayList<>();
        need(field).getAsJsonArray().forEach(e -> all.add(e.getAsString()));
        return all;
    }

    /** Sleeps for less than the milliseconds of the field rest; without it, not at all. */
    void rest() throws InterruptedException {
        long most = number("rest", 0);
        if (most > 0) {
            Thread.sleep(ThreadLocalRandom.current().nextLong(most));
        }
    }

    private JsonElement need(String field) {
        if (!has(field)) {
            throw new IllegalArgumentException("the command needs " + field);
        }
        return fields.get(field);
    }
}
