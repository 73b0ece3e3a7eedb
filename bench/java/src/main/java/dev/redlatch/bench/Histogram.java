package dev.redlatch.bench;

import java.util.Map;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;

/** Counts nanoseconds in buckets 0.4 % wide; the Go type of this name is the same. */
final class Histogram {
    private static final int FINE = 8;
    private static final int OCTAVES = 35;

    private final AtomicIntegerArray buckets = new AtomicIntegerArray((OCTAVES + 1) << FINE);
    private final AtomicLong count = new AtomicLong();
    private final AtomicLong max = new AtomicLong();

    void add(long nanos) {
        long n = Math.max(nanos, 0);
        int shift = Math.max(64 - Long.numberOfLeadingZeros(n) - FINE - 1, 0);
        buckets.incrementAndGet(Math.min((shift << FINE) + (int) (n >> shift), buckets.length() - 1));
        count.incrementAndGet();
        max.accumulateAndGet(n, Math::max);
    }

    long count() {
        return count.get();
    }

    double quantile(double q) {
        long rank = Math.max((long) Math.ceil(q * count.get()), 1);
        long seen = 0;
        for (int i = 0; i < buckets.length(); i++) {
            seen += buckets.get(i);
            if (seen >= rank) {
                int shift = Math.max((i >> FINE) - 1, 0);
                double low = (double) ((long) (i - (shift << FINE)) << shift);
                return Math.min(low + ((1L << shift) - 1) / 2.0, max.get());
            }
        }
        return max.get();
    }

    /** The figures of times, in microseconds. */
    void describe(Map<String, Double> values) {
        values.put("p50", quantile(0.5) / 1000);
        values.put("p99", quantile(0.99) / 1000);
        values.put("longest", max.get() / 1000.0);
    }
}
