package dev.redlatch.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.BaseConfig;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** Redisson clients by name, and their lock objects. */
final class Clients {
    private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();
    private final Map<String, RLock> locks = new ConcurrentHashMap<>();

    void addTo(Map<String, Operation> operations) {
        operations.put("client", this::open);
        operations.put("shutdown", this::shutdown);
    }

    RedissonClient client(Request r) {
        RedissonClient client = clients.get(r.text("client"));
        if (client == null) {
            throw new IllegalArgumentException("no client " + r.text("client"));
        }
        return client;
    }

    /**
     * The lock object of a command: kind ("plain", "fair", "fenced", "spin", "nonReentrant",
     * "nonReentrantFair", "read" and "write" for the two of a read/write lock, and "multi" for
     * several locks as one), name, and object, which tells apart several Java objects for one lock (default: one).
     * Redisson keeps the last lease in the object, so which one it is matters. For "multi" the
     * field members has the names, in order, and member their kind.
     */
    RLock lock(Request r) {
        RedissonClient client = client(r);
        String kind = r.text("kind", "plain");
        String name = r.text("name");
        String key = String.join("\0", r.text("client"), kind, name, r.text("object", ""));
        if (kind.equals("multi")) {
            RLock[] members = r.texts("members").stream()
                    .map(member -> make(client, r.text("member", "plain"), member))
                    .toArray(RLock[]::new);
            return locks.computeIfAbsent(key, k -> client.getMultiLock(members));
        }
        return locks.computeIfAbsent(key, k -> make(client, kind, name));
    }

    /** A new lock kind is one more line here. */
    private static RLock make(RedissonClient client, String kind, String name) {
        return switch (kind) {
            case "plain" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "fenced" -> later(client, "getFencedLock", name);
            case "spin" -> client.getSpinLock(name);
            case "nonReentrant" -> later(client, "getNonReentrantLock", name);
            case "nonReentrantFair" -> later(client, "getNonReentrantFairLock", name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            default -> throw new IllegalArgumentException("unknown kind " + kind);
        };
    }

    /** A lock of a kind that early releases do not have. */
    private static RLock later(RedissonClient client, String getter, String name) {
        try {
            return (RLock) RedissonClient.class.getMethod(getter, String.class).invoke(client, name);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Makes a client. Fields: mode ("single", "cluster"), addresses, and, in
     * milliseconds, watchdog, fairWait, timeout, subscription (a timeout, too);
     * prefix for the name mapper. For a cluster also sharded, its
     * shardedSubscriptionMode, and scan, how often in milliseconds it asks who
     * serves what. Replies its id and the settings that this release does not have.
     */
    private Object open(Request r) {
        List<String> unknown = new ArrayList<>();
        Config config = new Config();
        config.setThreads(4);
        config.setNettyThreads(4);
        if (r.has("watchdog")) {
            config.setLockWatchdogTimeout(r.number("watchdog"));
        }
        if (r.has("fairWait") && !Settings.set(config, "setFairLockWaitTimeout", r.number("fairWait"))) {
            unknown.add("fairWait");
        }
        BaseConfig<?> servers = switch (r.text("mode", "single")) {
            case "single" -> single(config, r);
            case "cluster" -> cluster(config, r, unknown);
            default -> throw new IllegalArgumentException("unknown mode " + r.text("mode"));
        };
        if (r.has("timeout")) {
            servers.setTimeout((int) r.number("timeout"));
        }
        if (r.has("subscription")
                && !Settings.set(servers, "setSubscriptionTimeout", (int) r.number("subscription"))) {
            unknown.add("subscription");
        }
        if (r.has("prefix") && !Settings.setNamePrefix(config, servers, r.text("prefix"))) {
            unknown.add("prefix");
        }
        RedissonClient client = Redisson.create(config);
        RedissonClient before = clients.put(r.text("client"), client);
        if (before != null) {
            before.shutdown();
        }
        return Map.of("id", client.getId(), "unknown", unknown);
    }

    /** Few connections: tests start many clients and read what each one sends. */
    private static BaseConfig<?> single(Config config, Request r) {
        SingleServerConfig server = config.useSingleServer();
        server.setAddress(r.texts("addresses").get(0));
        server.setConnectionMinimumIdleSize(1);
        server.setConnectionPoolSize(8);
        return server;
    }

    private static BaseConfig<?> cluster(Config config, Request r, List<String> unknown) {
        ClusterServersConfig servers = config.useClusterServers();
        servers.addNodeAddress(r.texts("addresses").toArray(new String[0]));
        servers.setMasterConnectionMinimumIdleSize(1);
        servers.setSlaveConnectionMinimumIdleSize(1);
        if (r.has("scan")) {
            servers.setScanInterval((int) r.number("scan"));
        }
        if (r.has("sharded") && !Settings.set(servers, "setShardedSubscriptionMode", r.text("sharded"))) {
            unknown.add("sharded");
        }
        return servers;
    }

    private Object shutdown(Request r) {
        client(r).shutdown(0, 5, TimeUnit.SECONDS);
        clients.remove(r.text("client"));
        locks.keySet().removeIf(key -> key.startsWith(r.text("client") + "\0"));
        return null;
    }
}
