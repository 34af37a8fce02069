import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/**
 * Writing: the canonical text. Fixed member order of the envelope, meta and dead_letter, then RFC
 * 8785 (UTF-16 key order, ECMAScript numbers, minimal escapes); integers exact at any size.
 */
final class Canonical {
    static final List<String> ENVELOPE = List.of("job", "trace_id", "data", "meta", "attempts", "dead_letter");
    static final List<String> META = List.of("id", "queue", "lang", "schema_version", "created_at");
    static final List<String> DEAD_LETTER =
        List.of("reason", "error", "exception", "failed_at", "original_queue", "attempts", "lang");
    private static final Map<String, List<String>> INSIDE = Map.of("meta", META, "dead_letter", DEAD_LETTER);
    private static final String SHORT = "\"\\\b\f\n\r\t";
    private static final String SHORT_NAMES = "\"\\bfnrt";

    private final StringBuilder out = new StringBuilder();

    private Canonical() {}

    static String envelope(Map<String, Object> envelope) {
        return new Canonical().object(envelope, ENVELOPE, INSIDE).out.toString();
    }

    static String deadLetter(Map<String, Object> block) {
        return new Canonical().object(block, DEAD_LETTER, Map.of()).out.toString();
    }

    static String value(Object value) {
        return new Canonical().any(value).out.toString();
    }

    /** Tells whether a value holds a number with a fraction or exponent beyond any double. */
    static boolean overflows(Object value) {
        if (value instanceof Num number) {
            return !number.finite() && !number.integer();
        }
        Collection<?> inside = value instanceof Map<?, ?> object ? object.values()
            : value instanceof List<?> array ? array : List.of();
        for (Object one : inside) {
            if (overflows(one)) {
                return true;
            }
        }
        return false;
    }

    private Canonical object(Map<?, ?> object, List<String> first, Map<String, List<String>> inside) {
        List<String> keys = new ArrayList<>(first);
        keys.removeIf(key -> !object.containsKey(key));
        object.keySet().stream().map(String.class::cast).filter(key -> !first.contains(key)).sorted().forEach(keys::add);
        char before = '{';
        for (String key : keys) {
            out.append(before);
            string(key);
            out.append(':');
            if (inside.containsKey(key) && object.get(key) instanceof Map<?, ?> inner) {
                object(inner, inside.get(key), Map.of());
            } else {
                any(object.get(key));
            }
            before = ',';
        }
        out.append(before == '{' ? "{}" : "}");
        return this;
    }

    private Canonical any(Object value) {
        if (value instanceof String text) {
            string(text);
        } else if (value instanceof Num number) {
            out.append(number.text());
        } else if (value instanceof Map<?, ?> object) {
            object(object, List.of(), Map.of());
        } else if (value instanceof List<?> array) {
            out.append('[');
            for (int index = 0; index < array.size(); index++) {
                out.append(index > 0 ? "," : "");
                any(array.get(index));
            }
            out.append(']');
        } else {
            out.append(value); // true, false, null
        }
        return this;
    }

    private void string(String text) {
        out.append('"');
        for (int index = 0; index < text.length(); index++) {
            char unit = text.charAt(index);
            int place = SHORT.indexOf(unit);
            if (place >= 0) {
                out.append('\\').append(SHORT_NAMES.charAt(place));
            } else if (unit < ' ') {
                out.append(String.format("\\u%04x", (int) unit));
            } else {
                out.append(unit);
            }
        }
        out.append('"');
    }
}
