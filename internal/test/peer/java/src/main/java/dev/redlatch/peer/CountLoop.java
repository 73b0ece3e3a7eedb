package dev.redlatch.peer;

import java.io.IOException;
import java.net.URI;
import java.util.Map;
import org.redisson.api.RLock;

/**
 * Raises a counter on the server under a lock, by reading and writing it in two
 * steps, until it has reached a total. Without exclusion steps would get lost:
 * then the rounds of all that count add up to more than the counter says.
 *
 * <p>Fields: as for lock, and address (redis://host:port), key, total. Replies
 * rounds, and in microseconds waited in all and the longest wait.
 */
final class CountLoop implements Operation {
    private final Clients clients;

    CountLoop(Clients clients) {
        this.clients = clients;
    }

    @Override
    public Object run(Request r) throws IOException {
        RLock lock = clients.lock(r);
        URI address = URI.create(r.text("address"));
        try (PlainRedis redis = new PlainRedis(address.getHost(), address.getPort())) {
            Tally tally = new Tally();
            while (round(lock, redis, r, tally)) {
                tally.rounds++;
            }
            return Map.of("rounds", tally.rounds, "waited", tally.waited, "longest", tally.longest);
        }
    }

    private static boolean round(RLock lock, PlainRedis redis, Request r, Tally tally) throws IOException {
        long began = Replies.now();
        lock.lock();
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

    private static final class Tally {
        private long rounds;
        private long waited;
        private long longest;

        void add(long wait) {
            waited += wait;
            longest = Math.max(longest, wait);
        }
    }
}
