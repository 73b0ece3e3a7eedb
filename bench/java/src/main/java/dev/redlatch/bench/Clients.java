package dev.redlatch.bench;

import dev.redlatch.bench.Main.Spec;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson clients, made once and kept warm. Not safe for concurrent use. */
final class Clients {
    /** As many connections as the other contestants' pools have. */
    private static final int POOL = 64;

    /** Enough channels for the most waiters that a JVM is asked for. */
    private static final int CHANNELS = 50;

    /** Milliseconds: a slow answer is to be measured, not to be an error. */
    private static final int PATIENCE = 60_000;

    /** Work that waits. */
    interface Wait {
        void run() throws InterruptedException;
    }

    /** One thread's way into a lock or to a permit, and out of it. */
    record Entrance(Wait enter, Runnable leave) {
        static Entrance of(RLock lock) {
            return new Entrance(lock::lockInterruptibly, lock::unlock);
        }
    }

    private final Map<String, RedissonClient> clients = new HashMap<>();

    /** The client of a role: those of different roles share nothing. */
    RedissonClient client(Spec spec, String role) {
        return clients.computeIfAbsent(spec.addr() + role, k -> make(spec.addr()));
    }

    /** Disconnects a client that was made for one measurement. */
    void drop(Spec spec, String role) {
        clients.remove(spec.addr() + role).shutdown(0, 1, TimeUnit.SECONDS);
    }

    RLock lock(RedissonClient client, Spec spec, String name) {
        if (spec.contestant().endsWith("-rw")) {
            return client.getReadWriteLock(name).writeLock();
        }
        return spec.contestant().endsWith("-fair") ? client.getFairLock(name) : client.getLock(name);
    }

    /** The same lock for those that read; a lock without readers is the lock itself. */
    RLock readLock(RedissonClient client, Spec spec, String name) {
        return spec.reads() == 0 ? lock(client, spec, name) : client.getReadWriteLock(name).readLock();
    }

    /** The entrance to a lock or to a semaphore, which it makes. */
    Entrance entrance(RedissonClient client, Spec spec, String name) {
        if (spec.contestant().endsWith("-permits")) {
            RPermitExpirableSemaphore permits = client.getPermitExpirableSemaphore(name);
            permits.trySetPermits(spec.permits());
            AtomicReference<String> id = new AtomicReference<>();
            return new Entrance(() -> id.set(permits.acquire()), () -> permits.release(id.get()));
        }
        if (spec.contestant().endsWith("-counter")) {
            RSemaphore counter = client.getSemaphore(name);
            counter.trySetPermits(spec.permits());
            return new Entrance(counter::acquire, counter::release);
        }
        return Entrance.of(lock(client, spec, name));
    }

    private static RedissonClient make(String addr) {
        Config config = new Config();
        config.useSingleServer()
                .setAddress("redis://" + addr)
                .setConnectionPoolSize(POOL)
                .setConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(POOL)
                .setSubscriptionsPerConnection(CHANNELS)
                // A thousand waiters subscribe at once.
                .setSubscriptionTimeout(PATIENCE)
                .setTimeout(PATIENCE);
        return Redisson.create(config);
    }
}
