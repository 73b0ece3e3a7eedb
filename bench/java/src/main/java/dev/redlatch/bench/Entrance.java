package dev.redlatch.bench;

import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;

/** One thread's way into a lock, or to a permit of a semaphore. */
interface Entrance {
    /** Waits until it is inside. */
    void enter() throws InterruptedException;

    /** Leaves. */
    void leave();

    static Entrance of(RLock lock) {
        return new Entrance() {
            @Override
            public void enter() throws InterruptedException {
                lock.lockInterruptibly();
            }

            @Override
            public void leave() {
                lock.unlock();
            }
        };
    }

    static Entrance of(RSemaphore counter) {
        return new Entrance() {
            @Override
            public void enter() throws InterruptedException {
                counter.acquire();
            }

            @Override
            public void leave() {
                counter.release();
            }
        };
    }

    static Entrance of(RPermitExpirableSemaphore permits) {
        return new Entrance() {
            private String id;

            @Override
            public void enter() throws InterruptedException {
                id = permits.acquire();
            }

            @Override
            public void leave() {
                permits.release(id);
            }
        };
    }
}
