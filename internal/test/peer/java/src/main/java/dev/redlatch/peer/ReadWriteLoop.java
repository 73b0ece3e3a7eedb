package dev.redlatch.peer;

import java.io.IOException;
import java.net.URI;
import java.util.Map;
import java.util.Random;
import org.redisson.api.RLock;

/**
 * Reads and writes two counters on the server under a read/write lock, until they have
 * reached a total. A writer raises one after the other, reading and writing each in two
 * steps. A reader must find them equal, and the same when it looks again: otherwise a
 * writer was inside beside it. Writers that were inside together lose rounds, so that the
 * rounds of all that write add up to more than the counters say.
 *
 * <p>Fields: client, name, address (redis://host:port), key and other for the counters,
 * total, readers for how many rounds of 100 read, and rest for the milliseconds between
 * two rounds at most. Replies reads, writes, and in microseconds the longest wait of each.
 */
final class ReadWriteLoop implements Operation {
    private final Clients clients;

    ReadWriteLoop(Clients clients) {
        this.clients = clients;
    }

    @Override
    public Object run(Request r) throws IOException, InterruptedException {
        Rounds rounds = new Rounds(r, clients.lock(r.kind("read")), clients.lock(r.kind("write")));
        URI address = URI.create(r.text("address"));
        try (PlainRedis redis = new PlainRedis(address.getHost(), address.getPort())) {
            Random random = new Random();
            do {
                r.rest();
            } while (random.nextInt(100) < r.number("readers") ? rounds.read(redis) : rounds.write(redis));
        }
        return Map.of(
                "reads", rounds.reads, "writes", rounds.writes,
                "longestRead", rounds.longestRead, "longestWrite", rounds.longestWrite);
    }

    private static final class Rounds {
        private final RLock read;
        private final RLock write;
        private final String[] keys;
        private final long total;
        private long reads;
        private long writes;
        private long longestRead;
        private long longestWrite;

        Rounds(Request r, RLock read, RLock write) {
            this.read = read;
            this.write = write;
            keys = new String[] {r.text("key"), r.text("other"), r.text("key")};
            total = r.number("total");
        }

        boolean read(PlainRedis redis) throws IOException {
            long began = Replies.now();
            read.lock();
            try {
                longestRead = Math.max(longestRead, Replies.now() - began);
                long first = count(redis, keys[0]);
                for (String key : keys) {
                    long now = count(redis, key);
                    if (now != first) {
                        throw new IllegalStateException(key + " is " + now + " and was " + first + ": a writer is inside");
                    }
                }
                reads++;
                return first < total;
            } finally {
                read.unlock();
            }
        }

        boolean write(PlainRedis redis) throws IOException {
            long began = Replies.now();
            write.lock();
            try {
                longestWrite = Math.max(longestWrite, Replies.now() - began);
                if (count(redis, keys[0]) >= total) {
                    return false;
                }
                for (String key : new String[] {keys[0], keys[1]}) {
                    redis.call("SET", key, Long.toString(count(redis, key) + 1));
                }
                writes++;
                return true;
            } finally {
                write.unlock();
            }
        }

        private static long count(PlainRedis redis, String key) throws IOException {
            String value = redis.call("GET", key);
            return value == null ? 0 : Long.parseLong(value);
        }
    }
}
