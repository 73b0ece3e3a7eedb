package dev.redlatch.peer;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.Map;
import org.redisson.api.RLock;

/**
 * What a thread does with a lock, as a Java program would. Fields: client, name,
 * kind, object; lease and wait in milliseconds, left out for the call without
 * that argument.
 */
final class LockOperations {
    private final Clients clients;

    LockOperations(Clients clients) {
        this.clients = clients;
    }

    void addTo(Map<String, Operation> operations) {
        operations.put("lock", this::lock);
        operations.put("lockInterruptibly", this::lockInterruptibly);
        operations.put("tryLock", this::tryLock);
        operations.put("unlock", this::unlock);
        operations.put("lockAndGetToken", r -> fenced(r, "lockAndGetToken"));
        operations.put("getToken", r -> fenced(r, "getToken"));
        operations.put("forceUnlock", r -> clients.lock(r).forceUnlock());
        operations.put("isLocked", r -> clients.lock(r).isLocked());
        operations.put("isHeldByCurrentThread", r -> clients.lock(r).isHeldByCurrentThread());
        operations.put("isHeldByThread", r -> clients.lock(r).isHeldByThread(r.number("threadId")));
        operations.put("getHoldCount", r -> clients.lock(r).getHoldCount());
        operations.put("remainTimeToLive", r -> clients.lock(r).remainTimeToLive());
    }

    private Object lock(Request r) {
        RLock lock = clients.lock(r);
        if (r.has("lease")) {
            lock.lock(r.number("lease"), MILLISECONDS);
        } else {
            lock.lock();
        }
        return null;
    }

    private Object lockInterruptibly(Request r) throws InterruptedException {
        RLock lock = clients.lock(r);
        if (r.has("lease")) {
            lock.lockInterruptibly(r.number("lease"), MILLISECONDS);
        } else {
            lock.lockInterruptibly();
        }
        return null;
    }

    private Object tryLock(Request r) throws InterruptedException {
        RLock lock = clients.lock(r);
        if (r.has("lease")) {
            return lock.tryLock(r.number("wait", 0), r.number("lease"), MILLISECONDS);
        }
        return r.has("wait") ? lock.tryLock(r.number("wait"), MILLISECONDS) : lock.tryLock();
    }

    /** Calls a method of a fenced lock, which early releases do not have. */
    private Object fenced(Request r, String method) throws ReflectiveOperationException {
        return Class.forName("org.redisson.api.RFencedLock").getMethod(method).invoke(clients.lock(r));
    }

    private Object unlock(Request r) {
        clients.lock(r).unlock();
        return null;
    }
}
