package dev.redlatch.peer;

import java.io.IOException;
import java.net.URI;
import java.util.Map;
import org.redisson.api.RLock;
import org.redisson.client.RedisTimeoutException;

/**
 * Raises a counter on the server under a lock, by reading and writing it in two
 * steps, until it has reached a total. Without exclusion steps would get lost:
 * then the rounds of all that count add up to more than the counter says.
 *
 * <p>Fields: as for lock, and address (redis://host:port), key, total,
 * timeouts: after how many subscription timeouts lock() is called again (default
 * none), and rest: the milliseconds between two rounds at most (default none).
 * Replies rounds, timeouts, and in microseconds waited in all and the
 * longest wait.
 */
final class CountLoop implements Operation {
    /** How the message of a subscription timeout begins, from 3.17.7 to 4.3.1. */
    private static final String SUBSCRIPTION_TIMEOUT = "Unable to acquire subscription lock";

    private final Clients clients;

    CountLoop(Clients clients) {
        this.clients = clients;
    }

    @Override
    public Object run(Request r) throws IOException, InterruptedException {
        RLock lock = clients.lock(r);
        URI address = URI.create(r.text("address"));
        try (PlainRedis redis = new PlainRedis(address.getHost(), address.getPort())) {
            Tally tally = new Tally();
            while (round(lock, redis, r, tally)) {
                tally.rounds++;
                r.rest();
            }
            return Map.of(
                    "rounds", tally.rounds, "timeouts", tally.timeouts,
                    "waited", tally.waited, "longest", tally.longest);
        }
    }

    private static boolean round(RLock lock, PlainRedis redis, Request r, Tally tally) throws IOException {
        long began = Replies.now();
        lock(lock, r.number("timeouts", 0), tally);
        try {
            tally.add(Replies.now() - began);
            String value = redis.call("GET", r.text("key"));
            long count = value == null ? 0 : Long.parseLong(value);
            if (count >= r.number("total")) {
                return false;
            }
            redis.call("SET", r.text("key"), Long.toString(count + 1));
            return true;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Locks. Redisson, at least up to 4.3.1, can forget a thread that subscribes
     * while another subscription ends: lock() then throws when the subscription
     * timeout is over. The thread does not hold the lock. In a fair lock's queue it
     * keeps its place, and blocks the others until it calls lock() again.
     */
    private static void lock(RLock lock, long timeouts, Tally tally) {
        while (true) {
            try {
                lock.lock();
                return;
            } catch (RedisTimeoutException e) {
                boolean subscription = String.valueOf(e.getMessage()).startsWith(SUBSCRIPTION_TIMEOUT);
                if (!subscription || tally.timeouts == timeouts) {
                    throw e;
                }
                tally.timeouts++;
            }
        }
    }

    private static final class Tally {
        private long rounds;
        private long timeouts;
        private long waited;
        private long longest;

        void add(long wait) {
            waited += wait;
            longest = Math.max(longest, wait);
        }
    }
}
