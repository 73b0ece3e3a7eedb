package dev.redlatch.peer;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletionStage;

/** Takes commands to the thread they belong to and their outcome to the replies. */
final class Peer {
    private final Replies replies;
    private final Workers workers = new Workers();
    /** Done by the reading thread itself, at once: they must not queue behind a blocked call. */
    private final Map<String, Operation> immediate = new HashMap<>();
    /** Done by the thread that the command names. */
    private final Map<String, Operation> threaded = new HashMap<>();

    Peer(Replies replies) {
        this.replies = replies;
        Clients clients = new Clients();
        immediate.put("thread", r -> workers.threadId(r.text("thread")));
        immediate.put("interrupt", r -> workers.interrupt(r.text("thread")));
        immediate.put("parked", r -> workers.parked(r.text("thread")));
        immediate.put("halt", r -> halt());
        clients.addTo(threaded);
        new LockOperations(clients).addTo(threaded);
        new AsyncLockOperations(clients).addTo(threaded);
        new ObjectOperations(clients).addTo(threaded);
        threaded.put("count", new CountLoop(clients));
    }

    /** Begins a command and returns at once. */
    void accept(Request request) {
        Operation now = immediate.get(request.op());
        if (now != null) {
            answer(request, now);
            return;
        }
        Operation later = threaded.getOrDefault(request.op(), Peer::unknown);
        workers.run(request.text("thread", "main"), () -> answer(request, later));
    }

    private void answer(Request request, Operation operation) {
        long from = Replies.now();
        try {
            Object value = operation.run(request);
            if (value instanceof CompletionStage<?> stage) {
                stage.whenComplete((v, thrown) -> finish(request, from, v, thrown));
                return;
            }
            replies.value(request.id(), from, value);
        } catch (Exception | Error thrown) {
            replies.error(request.id(), from, thrown);
        }
    }

    private void finish(Request request, long from, Object value, Throwable thrown) {
        if (thrown != null) {
            replies.error(request.id(), from, thrown);
        } else {
            replies.value(request.id(), from, value);
        }
    }

    /** Ends the process as a crash does: no hook runs, nothing is unlocked. */
    private static Object halt() {
        Runtime.getRuntime().halt(1);
        return null;
    }

    private static Object unknown(Request request) {
        throw new IllegalArgumentException("unknown op " + request.op());
    }
}
