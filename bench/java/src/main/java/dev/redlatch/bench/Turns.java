package dev.redlatch.bench;

import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;

/** Threads that lock and unlock: the same key, or each its own. */
final class Turns implements Job {
    private final boolean pairs;
    private final Team team = new Team();
    private final Histogram times = new Histogram();
    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicInteger readers = new AtomicInteger();
    private final int reads;
    private final int room; // inside, of those that do not read
    private final AtomicLongArray counts;
    private final AtomicLongArray begins;
    private volatile boolean counting;
    private Usage since;

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
            lock.enter();
            long took = System.nanoTime() - began;
            begins.set(me, 0);
            if (!pairs) {
                look(reader);
            }
            lock.leave();
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
            team.fail(new IllegalStateException("more threads were inside at once than may be"));
        }
        own.decrementAndGet();
    }

    @Override
    public void begin() {
        since = new Usage();
        counting = true;
    }

    @Override
    public Map<String, Double> end() {
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

    @Override
    public void close() throws Exception {
        team.end();
    }
}
