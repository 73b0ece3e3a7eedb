package dev.redlatch.bench;

import java.util.Map;

/** A measurement under way. */
interface Job {
    /** Begins to count. */
    void begin() throws Exception;

    /** Tells what was counted. */
    Map<String, Double> end() throws Exception;

    /** Ends the work, and throws what went wrong in it. */
    void close() throws Exception;
}
