package dev.redlatch.bench;

import dev.redlatch.bench.Clients.Entrance;
import dev.redlatch.bench.Main.Spec;
import dev.redlatch.bench.Tools.Histogram;
import dev.redlatch.bench.Tools.Probe;
import dev.redlatch.bench.Tools.Team;
import dev.redlatch.bench.Tools.Usage;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** The kinds of work. */
final class Jobs {
    private Jobs() {}

    /** A measurement under way. */
    abstract static class Job {
        final Team team = new Team();
        final Histogram times = new Histogram();
        volatile boolean counting;
        Usage since;

        /** Begins to count. */
        void begin() {
            since = new Usage();
            counting = true;
        }

        /** Returns what was counted. */
        abstract Map<String, Double> end() throws Exception;

        /** Ends the work, and throws what went wrong in it. */
        void close() throws Exception {
            team.end();
        }
    }

    /** Threads that lock and unlock: the same key, or each its own. */
    static final class Turns extends Job {
        private final boolean pairs;
        private final AtomicInteger inside = new AtomicInteger();
        private final AtomicInteger readers = new AtomicInteger();
        private final int reads;
        private final int room; // inside, of those that do not read
        private final AtomicLongArray counts;
        private final AtomicLongArray begins;

        Turns(Clients clients, Spec spec) {
            pairs = spec.kind().equals("pairs");
            reads = spec.reads();
            room = Math.max(spec.permits(), 1);
            int n = spec.goroutines();
            counts = new AtomicLongArray(n);
            begins = new AtomicLongArray(n);
            for (int i = 0; i < n; i++) {
                int me = i;
                String name = pairs ? spec.key() + ":" + i : spec.key();
                Entrance write = clients.entrance(clients.client(spec, ""), spec, name);
                Entrance read = reads == 0 ? write : Entrance.of(clients.readLock(clients.client(spec, ""), spec, name));
                team.start(() -> take(write, read, me));
            }
        }

        private void take(Entrance write, Entrance read, int me) throws Exception {
            while (!team.ended()) {
                boolean reader = ThreadLocalRandom.current().nextInt(100) < reads;
                Entrance lock = reader ? read : write;
                long began = System.nanoTime();
                begins.set(me, began);
                lock.enter().run();
                long took = System.nanoTime() - began;
                begins.set(me, 0);
                if (!pairs) {
                    look(reader);
                }
                lock.leave().run();
                if (pairs) {
                    took = System.nanoTime() - began;
                }
                if (counting) {
                    counts.incrementAndGet(me);
                    times.add(took);
                }
            }
        }

        /** Enters and leaves, and looks whether others are inside who may not be. */
        private void look(boolean reader) {
            AtomicInteger own = reader ? readers : inside;
            AtomicInteger others = reader ? inside : readers;
            if (own.incrementAndGet() > room && !reader || others.get() != 0) {
                team.fail(new IllegalStateException("too many threads held the lock"));
            }
            own.decrementAndGet();
        }

        @Override
        Map<String, Double> end() {
            counting = false;
            long sum = 0;
            long most = 0;
            long least = Long.MAX_VALUE;
            for (int i = 0; i < counts.length(); i++) {
                sum += counts.get(i);
                most = Math.max(most, counts.get(i));
                least = Math.min(least, counts.get(i));
            }
            Map<String, Double> values = since.per(sum);
            countOpenWaits();
            times.describe(values);
            if (sum > 0) {
                double equal = (double) sum / counts.length();
                values.put("luckiest", most / equal);
                values.put("unluckiest", least / equal);
            }
            return values;
        }

        /** As on the Go side: waits that are not over count with what they have lasted. */
        private void countOpenWaits() {
            if (pairs) {
                return;
            }
            double usual = times.quantile(0.5);
            long now = System.nanoTime();
            for (int i = 0; i < begins.length(); i++) {
                long began = begins.get(i);
                if (began != 0 && now - began > usual) {
                    times.add(now - began);
                }
            }
        }
    }

    /** Passes a lock between two clients that share nothing but the server. */
    static final class Wakeups extends Job {
        private static final long SETTLE_MILLIS = 3;

        private final RLock[] locks = new RLock[2];
        /** A thread for each client, since a Redisson lock belongs to its thread. */
        private final ExecutorService[] threads = new ExecutorService[2];
        private final Histogram whole = new Histogram();

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
        Map<String, Double> end() {
            counting = false;
            Map<String, Double> values = since.per(times.count());
            times.describe(values);
            values.put("whole", whole.quantile(0.5) / 1000);
            return values;
        }

        @Override
        void close() throws Exception {
            team.end();
            for (ExecutorService t : threads) {
                t.shutdownNow();
            }
        }
    }

    /** Waits for a lock that another client holds with a lease that is not renewed. */
    static final class Idle extends Job {
        /** Waiters have a client of their own each time: its connections are counted. */
        private static final String WAITER = "waiter";

        private final Clients clients;
        private final Spec spec;
        private final Probe probe;
        private final int waiters;
        private final double connections;
        private final int threads;

        Idle(Clients clients, Spec spec) throws Exception {
            this.clients = clients;
            this.spec = spec;
            waiters = spec.goroutines();
            clients.lock(clients.client(spec, "holder"), spec, spec.key()).lock(1, TimeUnit.HOURS);
            probe = new Probe(spec);
            connections = probe.connections();
            threads = Thread.activeCount();
            for (int i = 0; i < waiters; i++) {
                RLock lock = clients.lock(clients.client(spec, WAITER), spec, spec.key());
                team.start(() -> {
                    lock.lockInterruptibly();
                    team.fail(new IllegalStateException("a waiter acquired a lock that was never released"));
                });
            }
        }

        @Override
        Map<String, Double> end() throws Exception {
            Map<String, Double> values = since.rest(waiters);
            values.put("goroutines", (double) (Thread.activeCount() - threads) / waiters);
            values.put("connections", probe.connections() - connections);
            return values;
        }

        @Override
        void close() throws Exception {
            probe.close();
            try {
                team.end();
            } finally {
                clients.drop(spec, WAITER);
            }
        }
    }

    /** Holds many locks, which are renewed, and looks at their leases. */
    static final class Renewals extends Job {
        private static final int TAKERS = 64;
        private static final int LOOK_AT = 500;
        private static final long LOOK_EVERY_MILLIS = 250;

        /** A client of its own each time: afterwards it would go on renewing. */
        private static final String KEEPER = "keeper";

        private final Clients clients;
        private final Spec spec;
        private final List<String> names = new ArrayList<>();
        private final Probe probe;
        private volatile long lease;
        private volatile long least = Long.MAX_VALUE;
        private volatile long gone;

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
        Map<String, Double> end() {
            counting = false;
            Map<String, Double> values = since.rest(names.size());
            values.put("oldest", (lease - least) / 1000.0);
            values.put("gone", (double) gone);
            return values;
        }

        @Override
        void close() throws Exception {
            try {
                team.end();
                probe.close();
            } finally {
                clients.drop(spec, KEEPER);
            }
        }
    }
}
