package dev.redlatch.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.redisson.api.RedissonClient;

/** Holds many locks, which are renewed, and looks at their leases. */
final class Renewals implements Job {
    private static final int TAKERS = 64;
    private static final int LOOK_AT = 500;
    private static final long LOOK_EVERY_MILLIS = 250;

    /** A client of its own each time: afterwards it would go on renewing. */
    private static final String KEEPER = "keeper";

    private final Clients clients;
    private final Spec spec;
    private final Team team = new Team();
    private final List<String> names = new ArrayList<>();
    private final Probe probe;
    private volatile boolean counting;
    private volatile long lease;
    private volatile long least = Long.MAX_VALUE;
    private volatile long gone;
    private Usage since;

    Renewals(Clients clients, Spec spec) throws Exception {
        this.clients = clients;
        this.spec = spec;
        RedissonClient client = clients.client(spec, KEEPER);
        ExecutorService takers = Executors.newFixedThreadPool(TAKERS);
        List<Future<?>> taken = new ArrayList<>();
        for (int i = 0; i < spec.goroutines(); i++) {
            String name = spec.key() + ":" + i;
            names.add(name);
            taken.add(takers.submit(() -> clients.lock(client, spec, name).lock()));
        }
        for (Future<?> f : taken) {
            f.get();
        }
        takers.shutdown();
        probe = new Probe(spec);
        team.start(this::look);
    }

    private void look() throws Exception {
        int n = Math.min(LOOK_AT, names.size());
        for (int at = 0; !team.ended(); at = (at + n) % names.size()) {
            Thread.sleep(LOOK_EVERY_MILLIS);
            List<String> some = new ArrayList<>();
            for (int i = 0; i < n; i++) {
                some.add(names.get((at + i) % names.size()));
            }
            for (long left : probe.left(some, n)) {
                lease = Math.max(lease, left);
                if (counting && left < 0) {
                    gone++;
                } else if (counting) {
                    least = Math.min(least, left);
                }
            }
        }
    }

    @Override
    public void begin() {
        since = new Usage();
        counting = true;
    }

    @Override
    public Map<String, Double> end() {
        counting = false;
        Map<String, Double> values = since.rest(names.size());
        values.put("oldest", (lease - least) / 1000.0);
        values.put("gone", (double) gone);
        return values;
    }

    @Override
    public void close() throws Exception {
        try {
            team.end();
            probe.close();
        } finally {
            clients.drop(spec, KEEPER);
        }
    }
}
