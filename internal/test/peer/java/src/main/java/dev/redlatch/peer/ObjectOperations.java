package dev.redlatch.peer;

import com.google.gson.JsonElement;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/**
 * Calls methods of what is no lock, by their names: of a semaphore, of one whose permits
 * expire, and of a latch. So a method that only some releases have is called like the others,
 * and so is one that answers with a future.
 *
 * <p>Fields: client, name, kind ("semaphore", "permits", "latch"), method, and args in order: a
 * number, a text, a list of texts, "ms" where Java wants a TimeUnit, and {"ms": 5000} for a
 * Duration. A method that this release does not have is a NoSuchMethodException.
 */
final class ObjectOperations {
    /** Stands for the unit of the number before it. */
    private static final String UNIT = "ms";

    private final Clients clients;

    ObjectOperations(Clients clients) {
        this.clients = clients;
    }

    void addTo(Map<String, Operation> operations) {
        operations.put("call", this::call);
    }

    /** An object of Redisson's, and the interface that has its methods. */
    private record Target(Class<?> type, Object object) {}

    private Target target(Request r) {
        RedissonClient client = clients.client(r);
        String name = r.text("name");
        return switch (r.text("kind")) {
            case "semaphore" -> new Target(RSemaphore.class, client.getSemaphore(name));
            case "permits" -> new Target(RPermitExpirableSemaphore.class, client.getPermitExpirableSemaphore(name));
            case "latch" -> new Target(RCountDownLatch.class, client.getCountDownLatch(name));
            default -> throw new IllegalArgumentException("unknown kind " + r.text("kind"));
        };
    }

    private Object call(Request r) throws Exception {
        Target target = target(r);
        List<JsonElement> args = r.list("args");
        for (Method method : target.type().getMethods()) {
            if (!method.getName().equals(r.text("method")) || !fit(args, method.getParameterTypes())) {
                continue;
            }
            try {
                return method.invoke(target.object(), values(args, method.getParameterTypes()));
            } catch (InvocationTargetException e) {
                if (e.getCause() instanceof Exception thrown) {
                    throw thrown;
                }
                throw e;
            }
        }
        throw new NoSuchMethodException(r.text("kind") + "." + r.text("method") + args);
    }

    private static boolean fit(List<JsonElement> args, Class<?>[] types) {
        if (args.size() != types.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            if (!fits(args.get(i), types[i])) {
                return false;
            }
        }
        return true;
    }

    private static boolean fits(JsonElement arg, Class<?> type) {
        if (arg.isJsonArray()) {
            return type == List.class;
        }
        if (arg.isJsonObject()) {
            return type == Duration.class;
        }
        if (arg.getAsJsonPrimitive().isNumber()) {
            return type == int.class || type == long.class;
        }
        return arg.getAsString().equals(UNIT) ? type == TimeUnit.class : type == String.class;
    }

    private static Object[] values(List<JsonElement> args, Class<?>[] types) {
        Object[] all = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            all[i] = value(args.get(i), types[i]);
        }
        return all;
    }

    private static Object value(JsonElement arg, Class<?> type) {
        if (type == int.class) {
            return arg.getAsInt();
        }
        if (type == long.class) {
            return arg.getAsLong();
        }
        if (type == TimeUnit.class) {
            return TimeUnit.MILLISECONDS;
        }
        if (type == Duration.class) {
            return Duration.ofMillis(arg.getAsJsonObject().get(UNIT).getAsLong());
        }
        if (type == List.class) {
            List<String> texts = new ArrayList<>();
            arg.getAsJsonArray().forEach(e -> texts.add(e.getAsString()));
            return texts;
        }
        return arg.getAsString();
    }
}
