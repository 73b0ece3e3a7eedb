package dev.redlatch.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/** Threads that work until they are ended. */
final class Team {
    /** Work that looks at {@link #ended} or can be interrupted. */
    interface Work {
        void run() throws Exception;
    }

    private static final long GRACE_MILLIS = 1000;

    private final List<Thread> threads = new ArrayList<>();
    private final AtomicReference<Exception> failed = new AtomicReference<>();
    private volatile boolean ended;

    boolean ended() {
        return ended;
    }

    void fail(Exception e) {
        failed.compareAndSet(null, e);
    }

    void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception e) {
                if (!ended) {
                    fail(e);
                }
            }
        });
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    /** Ends all of it: those that wait are interrupted when they had time to end. */
    void end() throws Exception {
        ended = true;
        long until = System.currentTimeMillis() + GRACE_MILLIS;
        for (Thread t : threads) {
            t.join(Math.max(until - System.currentTimeMillis(), 1));
        }
        for (Thread t : threads) {
            t.interrupt();
        }
        for (Thread t : threads) {
            t.join();
        }
        if (failed.get() != null) {
            throw failed.get();
        }
    }
}
