package dev.redlatch.bench;

/** One measurement; the Go type of this name says what the fields are. */
record Spec(
        String kind,
        String contestant,
        String addr,
        String key,
        int goroutines,
        int reads,
        int permits,
        boolean separate,
        long warmup,
        long duration) {}
