package dev.redlatch.bench;

import com.sun.management.OperatingSystemMXBean;
import dev.redlatch.bench.Main.Spec;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** What the kinds of work share. */
final class Tools {
    private Tools() {}

    /** Counts nanoseconds in buckets 0.4 % wide; the Go type of this name is the same. */
    static final class Histogram {
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

    /** What the process has used until a moment. */
    static final class Usage {
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

    /** Threads that work until they are ended. */
    static final class Team {
        /** Work that looks at {@link #ended} or can be interrupted. */
        interface Work {
            void run() throws Exception;
        }

        private static final long GRACE_MILLIS = 1000;

        private final List<Thread> threads = new ArrayList<>();
        private final AtomicReference<Exception> failed = new AtomicReference<>();
        private volatile boolean ended;

        boolean ended() {
            return ended;
        }

        void fail(Exception e) {
            failed.compareAndSet(null, e);
        }

        void start(Work work) {
            Thread thread = new Thread(() -> {
                try {
                    work.run();
                } catch (Exception e) {
                    if (!ended) {
                        fail(e);
                    }
                }
            });
            thread.setDaemon(true);
            threads.add(thread);
            thread.start();
        }

        /** Ends all of it: those that wait are interrupted when they had time to end. */
        void end() throws Exception {
            ended = true;
            long until = System.currentTimeMillis() + GRACE_MILLIS;
            for (Thread t : threads) {
                t.join(Math.max(until - System.currentTimeMillis(), 1));
            }
            for (Thread t : threads) {
                t.interrupt();
            }
            for (Thread t : threads) {
                t.join();
            }
            if (failed.get() != null) {
                throw failed.get();
            }
        }
    }

    /** A connection of its own to the server, for what the benchmark itself asks. */
    static final class Probe implements AutoCloseable {
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
}
