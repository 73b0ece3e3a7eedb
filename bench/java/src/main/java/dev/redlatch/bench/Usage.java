package dev.redlatch.bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;

/** What the process has used until a moment. */
final class Usage {
    private final long at = System.nanoTime();
    private final long cpu = cpuNanos();

    private static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    double seconds() {
        return (System.nanoTime() - at) / 1e9;
    }

    /** The figures of count events since then. */
    Map<String, Double> per(double count) {
        Map<String, Double> values = new HashMap<>();
        values.put("count", count);
        values.put("rate", count / seconds());
        if (count > 0) {
            values.put("client_cpu", (cpuNanos() - cpu) / 1000.0 / count);
        }
        return values;
    }

    /** The figures of waiters or locks with which nothing happens. */
    Map<String, Double> rest(double count) {
        Map<String, Double> values = per(count);
        values.remove("rate");
        values.computeIfPresent("client_cpu", (k, v) -> v / seconds());
        return values;
    }
}
