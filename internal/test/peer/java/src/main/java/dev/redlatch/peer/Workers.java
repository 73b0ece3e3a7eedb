package dev.redlatch.peer;

import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;

/** Threads by name, made when first named. Each runs its tasks in order. */
final class Workers {
    private final Map<String, Worker> workers = new ConcurrentHashMap<>();

    /** Queues a task for the thread. */
    void run(String name, Runnable task) {
        worker(name).tasks.add(task);
    }

    /** The id under which Redisson knows the thread. */
    @SuppressWarnings("deprecation") // threadId() is not in the Java that this is built for
    long threadId(String name) {
        return worker(name).getId();
    }

    /** Interrupts what the thread does now, if anything. */
    boolean interrupt(String name) {
        Worker worker = worker(name);
        if (!worker.busy) {
            return false;
        }
        worker.interrupt();
        return true;
    }

    /** Whether the thread waits for a permit of a semaphore, as Redisson's waiters do between their attempts. */
    boolean parked(String name) {
        Worker worker = worker(name);
        boolean acquires = Arrays.stream(worker.getStackTrace())
                .anyMatch(f -> f.getClassName().equals(Semaphore.class.getName()));
        Thread.State state = worker.getState();
        return acquires && (state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING);
    }

    private Worker worker(String name) {
        return workers.computeIfAbsent(name, Worker::begin);
    }

    private static final class Worker extends Thread {
        private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
        private volatile boolean busy;

        private Worker(String name) {
            super(name);
        }

        static Worker begin(String name) {
            Worker worker = new Worker(name);
            worker.setDaemon(true);
            worker.start();
            return worker;
        }

        @Override
        public void run() {
            while (true) {
                try {
                    Runnable task = tasks.take();
                    busy = true;
                    task.run();
                } catch (InterruptedException e) {
                    continue; // meant for a task that was over by then
                } finally {
                    busy = false;
                    Thread.interrupted(); // the next task begins with a clean slate
                }
            }
        }
    }
}
