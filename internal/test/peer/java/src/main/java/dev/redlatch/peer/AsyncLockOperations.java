package dev.redlatch.peer;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.Map;
import org.redisson.api.RLock;

/**
 * The asynchronous calls, in which the caller chooses the owner's number: field
 * threadId, any long. Otherwise as {@link LockOperations}. They answer when the
 * future completes and do not block their thread.
 */
final class AsyncLockOperations {
    private final Clients clients;

    AsyncLockOperations(Clients clients) {
        this.clients = clients;
    }

    void addTo(Map<String, Operation> operations) {
        operations.put("lockAsync", this::lock);
        operations.put("tryLockAsync", this::tryLock);
        operations.put("unlockAsync", r -> clients.lock(r).unlockAsync(r.number("threadId")));
        operations.put("forceUnlockAsync", r -> clients.lock(r).forceUnlockAsync());
    }

    private Object lock(Request r) {
        RLock lock = clients.lock(r);
        long owner = r.number("threadId");
        return r.has("lease") ? lock.lockAsync(r.number("lease"), MILLISECONDS, owner) : lock.lockAsync(owner);
    }

    private Object tryLock(Request r) {
        RLock lock = clients.lock(r);
        long owner = r.number("threadId");
        if (!r.has("wait") && !r.has("lease")) {
            return lock.tryLockAsync(owner);
        }
        return lock.tryLockAsync(r.number("wait", 0), r.number("lease", -1), MILLISECONDS, owner);
    }
}
