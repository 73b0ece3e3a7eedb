package dev.redlatch.peer;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Properties;
import org.redisson.Redisson;

/** What differs from release to release, reached by name. */
final class Settings {
    private Settings() {}

    /** The release of Redisson that runs here, as its jar says. */
    static String version() throws IOException {
        String path = "/META-INF/maven/org.redisson/redisson/pom.properties";
        try (InputStream in = Redisson.class.getResourceAsStream(path)) {
            Properties properties = new Properties();
            if (in != null) {
                properties.load(in);
            }
            return properties.getProperty("version", "unknown");
        }
    }

    /** Calls a setter of one long. False when this release has none. */
    static boolean set(Object config, String setter, long value) {
        return set(config, setter, long.class, value);
    }

    /** Calls a setter of one int. False when this release has none. */
    static boolean set(Object config, String setter, int value) {
        return set(config, setter, int.class, value);
    }

    private static boolean set(Object config, String setter, Class<?> type, Object value) {
        try {
            return call(config.getClass().getMethod(setter, type), config, value);
        } catch (NoSuchMethodException e) {
            return false;
        }
    }

    /** Calls a setter of one enum with the constant of this name. False when this release has none. */
    static boolean set(Object config, String setter, String constant) {
        for (Method method : config.getClass().getMethods()) {
            Class<?>[] types = method.getParameterTypes();
            if (!method.getName().equals(setter) || types.length != 1 || !types[0].isEnum()) {
                continue;
            }
            for (Object value : types[0].getEnumConstants()) {
                if (((Enum<?>) value).name().equals(constant)) {
                    return call(method, config, value);
                }
            }
            throw new IllegalArgumentException(setter + " knows no " + constant);
        }
        return false;
    }

    private static boolean call(Method setter, Object config, Object value) {
        try {
            setter.invoke(config, value);
            return true;
        } catch (IllegalAccessException | InvocationTargetException e) {
            throw new IllegalStateException(setter.getName(), e);
        }
    }

    /**
     * Sets a name mapper that puts a prefix in front. Redisson 4 moved both the
     * interface and the setter: whichever of the two objects has one is used.
     */
    static boolean setNamePrefix(Object config, Object servers, String prefix) {
        return setNamePrefix(config, prefix) || setNamePrefix(servers, prefix);
    }

    private static boolean setNamePrefix(Object target, String prefix) {
        for (Method setter : target.getClass().getMethods()) {
            if (!setter.getName().equals("setNameMapper") || setter.isBridge()) {
                continue;
            }
            return call(setter, target, mapper(setter.getParameterTypes()[0], prefix));
        }
        return false;
    }

    private static Object mapper(Class<?> type, String prefix) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, args) ->
            switch (method.getName()) {
                case "map" -> prefix + args[0];
                case "unmap" -> unmap((String) args[0], prefix);
                case "hashCode" -> prefix.hashCode();
                case "equals" -> self == args[0];
                default -> "prefix " + prefix;
            });
    }

    private static String unmap(String name, String prefix) {
        return name.startsWith(prefix) ? name.substring(prefix.length()) : name;
    }
}
