package dev.redlatch.bench;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** Waits for locks that another client holds with a lease that is not renewed. */
final class Idle implements Job {
    /** Waiters have a client of their own each time: its connections are counted. */
    private static final String WAITER = "waiter";

    private final Clients clients;
    private final Spec spec;
    private final Team team = new Team();
    private final Probe probe;
    private final int waiters;
    private final double connections;
    private final double heap;
    private final int threads;
    private Usage since;

    Idle(Clients clients, Spec spec) throws Exception {
        this.clients = clients;
        this.spec = spec;
        waiters = spec.goroutines();
        for (int i = 0; i < (spec.separate() ? waiters : 1); i++) {
            clients.lock(clients.client(spec, "holder"), spec, name(spec, i)).lock(1, TimeUnit.HOURS);
        }
        probe = new Probe(spec);
        connections = probe.connections();
        heap = heap();
        threads = Thread.activeCount();
        for (int i = 0; i < waiters; i++) {
            RLock lock = clients.lock(clients.client(spec, WAITER), spec, name(spec, i));
            team.start(() -> {
                lock.lockInterruptibly();
                team.fail(new IllegalStateException("a waiter got a lock that was never freed"));
            });
        }
    }

    private static String name(Spec spec, int i) {
        return spec.separate() ? spec.key() + ":" + i : spec.key();
    }

    private static double heap() {
        System.gc();
        Runtime r = Runtime.getRuntime();
        return r.totalMemory() - r.freeMemory();
    }

    @Override
    public void begin() {
        since = new Usage();
    }

    @Override
    public Map<String, Double> end() throws Exception {
        Map<String, Double> values = since.rest(waiters);
        values.put("goroutines", (double) (Thread.activeCount() - threads) / waiters);
        values.put("heap", (heap() - heap) / waiters);
        values.put("connections", probe.connections() - connections);
        return values;
    }

    @Override
    public void close() throws Exception {
        probe.close();
        try {
            team.end();
        } finally {
            clients.drop(spec, WAITER);
        }
    }
}
