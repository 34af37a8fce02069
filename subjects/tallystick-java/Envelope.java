import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * The envelope: verdict, identity (`job`, or its alias `urn`), what is dropped with a warning, the
 * consumer's five checks, and making a new message. `members` is null unless the verdict is ok.
 */
record Envelope(String verdict, String reason, String pointer, Document document,
                Map<String, Object> members, List<String> warnings) {
    private static final List<String> FORBIDDEN_TOP = List.of("timestamp");
    private static final List<String> FORBIDDEN_META = List.of("max_retries", "attempts", "source", "ts");
    /** How many containers stand around each part of a new message. */
    private static final Map<String, Integer> PART_LEVELS =
        Map.of("data", 1, "meta", 1, "extras_meta", 1, "extras_top", 0, "meta_entries", 0);

    /** A message that may not be read or written: a result of the protocol, not an error. */
    static final class Rejected extends Exception {
        private static final long serialVersionUID = 1L;
        final String pointer;

        Rejected(String reason, String pointer) {
            super(reason);
            this.pointer = pointer;
        }
    }

    static Envelope decode(byte[] body) {
        Document document;
        try {
            document = Document.read(Document.utf8Text(body), Document.ENVELOPE, 0);
        } catch (Document.Unreadable broken) {
            return not("poison", broken.getMessage(), null);
        }
        if (document.value == null) {
            return not("no_identity", "null has no identity", null);
        }
        if (!(document.value instanceof Map)) {
            return not("poison", "not a JSON object", null);
        }
        if (document.problem != null) {
            return not("poison", (document.pointer + " " + document.problem).strip(), document.pointer);
        }
        Map<String, Object> members = asObject(document.value);
        List<String> warnings = new ArrayList<>();
        if (isIdentity(members.get("job"))) {
            if (members.containsKey("urn")) {
                warnings.add("/urn");
            }
        } else if (isIdentity(members.get("urn"))) {
            if (members.containsKey("job") && !(members.get("job") instanceof String)) {
                warnings.add("/job");
            }
            members.put("job", members.get("urn"));
        } else {
            return not("no_identity", "neither `job` nor `urn` is a non-blank string", null);
        }
        members.remove("urn");
        drop(members, FORBIDDEN_TOP, "/", warnings);
        if (members.get("meta") != null) {
            drop(asObject(members.get("meta")), FORBIDDEN_META, "/meta/", warnings);
        }
        return new Envelope("ok", "", null, document, members, warnings);
    }

    static Envelope mustDecode(byte[] body) throws Rejected {
        Envelope found = decode(body);
        if (found.members == null) {
            throw new Rejected(found.verdict + ": " + found.reason, found.pointer);
        }
        return found;
    }

    static Envelope mustAccept(byte[] body) throws Rejected {
        Envelope found = mustDecode(body);
        if (!found.accepted()) {
            throw new Rejected("a consumer does not accept this envelope", null);
        }
        return found;
    }

    boolean accepted() {
        return meta().get("schema_version") instanceof Num version && version.text().equals("1")
            && members.get("data") instanceof Map && members.get("attempts") instanceof Num
            && isIdentity(members.get("trace_id"));
    }

    Map<String, Object> meta() {
        return members.get("meta") == null ? Map.of() : asObject(members.get("meta"));
    }

    /** Builds a new message, or throws when it may not be written. */
    static Map<String, Object> make(Map<String, Object> given) throws Rejected {
        if (!isIdentity(given.get("urn"))) {
            throw new Rejected("the URN is blank", "/job");
        }
        Map<String, Object> parts = new HashMap<>();
        for (String name : PART_LEVELS.keySet()) {
            if (given.get(name + "_base64") instanceof String text) {
                parts.put(name, readPart(name, Base64.getDecoder().decode(text)));
            }
        }
        if (!(parts.get("data") instanceof Map)) {
            throw new Rejected("`data` must be an object", "/data");
        }
        Map<String, Object> meta = new HashMap<>();
        meta.put("id", UUID.randomUUID().toString());
        meta.put("queue", given.get("queue") == null ? "default" : given.get("queue"));
        meta.put("lang", "java");
        meta.put("schema_version", Num.of(1));
        meta.put("created_at", Num.of(System.currentTimeMillis()));
        List<Map<String, Object>> groups = new ArrayList<>();
        groups.add(part(parts, "meta"));
        for (Object pair : (List<?>) parts.getOrDefault("meta_entries", List.of())) {
            Map<String, Object> one = new HashMap<>();
            one.put((String) ((List<?>) pair).get(0), ((List<?>) pair).get(1));
            groups.add(one);
        }
        groups.add(part(parts, "extras_meta"));
        for (Map<String, Object> group : groups) {
            for (Map.Entry<String, Object> entry : group.entrySet()) {
                if (meta.containsKey(entry.getKey()) || FORBIDDEN_META.contains(entry.getKey())) {
                    throw new Rejected("this key may not be written", "/meta/" + entry.getKey());
                }
                meta.put(entry.getKey(), entry.getValue());
            }
        }
        Map<String, Object> envelope = new HashMap<>(part(parts, "extras_top"));
        for (String key : envelope.keySet()) {
            if (Canonical.ENVELOPE.contains(key) || FORBIDDEN_TOP.contains(key) || key.equals("urn")) {
                throw new Rejected("this key may not be written", "/" + key);
            }
        }
        Object traceId = given.get("trace_id");
        envelope.put("job", trim((String) given.get("urn")));
        envelope.put("trace_id", isIdentity(traceId) ? trim((String) traceId) : UUID.randomUUID().toString());
        envelope.put("data", parts.get("data"));
        envelope.put("meta", meta);
        envelope.put("attempts", Num.of(0));
        return envelope;
    }

    private static Object readPart(String name, byte[] bytes) throws Rejected {
        try {
            Document.Shape shape = name.equals("data") ? Document.DATA : null;
            Document part = Document.read(Document.utf8Text(bytes), shape, PART_LEVELS.get(name));
            if (Canonical.overflows(part.value) || part.problem != null) {
                throw new Rejected(name + " holds a number beyond the range of a double", null);
            }
            return part.value;
        } catch (Document.Unreadable broken) {
            throw new Rejected(name + ": " + broken.getMessage(), null);
        }
    }

    private static Map<String, Object> part(Map<String, Object> parts, String name) {
        return parts.get(name) == null ? Map.of() : asObject(parts.get(name));
    }

    @SuppressWarnings("unchecked") // only Document makes maps, and only with string keys
    static Map<String, Object> asObject(Object value) {
        return (Map<String, Object>) value;
    }

    private static Envelope not(String verdict, String reason, String pointer) {
        return new Envelope(verdict, reason, pointer, null, null, List.of());
    }

    private static void drop(Map<String, Object> object, List<String> keys, String prefix, List<String> warnings) {
        for (String key : keys) {
            if (object.containsKey(key)) {
                object.remove(key);
                warnings.add(prefix + key);
            }
        }
    }

    private static boolean isIdentity(Object value) {
        return value instanceof String text && !trim(text).isEmpty();
    }

    private static String trim(String text) {
        int start = 0;
        int end = text.length();
        while (start < end && isBlank(text.charAt(start))) {
            start++;
        }
        while (end > start && isBlank(text.charAt(end - 1))) {
            end--;
        }
        return text.substring(start, end);
    }

    private static boolean isBlank(char unit) {
        return unit == ' ' || unit >= '\t' && unit <= '\r';
    }
}
