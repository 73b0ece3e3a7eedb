package dev.redlatch.bench;

import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.redisson.api.RLock;

/** Passes a lock between two clients that share nothing but the server. */
final class Wakeups implements Job {
    private static final long SETTLE_MILLIS = 3;

    private final RLock[] locks = new RLock[2];
    /** A thread for each client, since a Redisson lock belongs to its thread. */
    private final ExecutorService[] threads = new ExecutorService[2];
    private final Team team = new Team();
    private final Histogram times = new Histogram();
    private final Histogram whole = new Histogram();
    private volatile boolean counting;
    private Usage since;

    Wakeups(Clients clients, Spec spec) {
        for (int i = 0; i < locks.length; i++) {
            locks[i] = clients.lock(clients.client(spec, "wake" + i), spec, spec.key());
            threads[i] = Executors.newSingleThreadExecutor();
        }
        team.start(this::pass);
    }

    private void pass() throws Exception {
        take(0).get();
        for (int next = 1; !team.ended(); next = 1 - next) {
            int holder = 1 - next;
            Future<Long> taken = take(next);
            Thread.sleep(SETTLE_MILLIS);
            long called = System.nanoTime();
            long freed = free(holder).get();
            long got = taken.get();
            if (counting) {
                times.add(got - freed);
                whole.add(got - called);
            }
        }
    }

    private Future<Long> take(int i) {
        return threads[i].submit((Callable<Long>) () -> {
            locks[i].lockInterruptibly();
            return System.nanoTime();
        });
    }

    private Future<Long> free(int i) {
        return threads[i].submit(() -> {
            locks[i].unlock();
            return System.nanoTime();
        });
    }

    @Override
    public void begin() {
        since = new Usage();
        counting = true;
    }

    @Override
    public Map<String, Double> end() {
        counting = false;
        Map<String, Double> values = since.per(times.count());
        times.describe(values);
        values.put("whole", whole.quantile(0.5) / 1000);
        return values;
    }

    @Override
    public void close() throws Exception {
        team.end();
        for (ExecutorService t : threads) {
            t.shutdownNow();
        }
    }
}
