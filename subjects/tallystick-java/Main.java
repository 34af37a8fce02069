import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The Java subject: it speaks the stdio protocol (docs/reference/protocol.md), one JSON object per
 * line. It reports what it does and never judges.
 */
final class Main {
    interface Operation {
        Map<String, Object> run(byte[] body, Map<String, Object> given) throws Envelope.Rejected, Document.Unreadable;
    }

    interface Change {
        String apply(String source) throws Document.Unreadable;
    }

    private static final Map<String, Operation> OPERATIONS = new TreeMap<>(Map.of(
        "canonical", (body, given) -> bytes(written(Envelope.mustAccept(body).members())),
        "decode", (body, given) -> decode(Envelope.decode(body)),
        "reencode", Main::reencode,
        "make", (body, given) -> bytes(Canonical.envelope(Envelope.make(given))),
        "retry", (body, given) -> splice(body, source -> Splice.attempts(source, attempts(given))),
        "redrive", (body, given) -> splice(body, Splice::redrive),
        "dead_letter", (body, given) -> splice(body, source ->
            Splice.deadLetter(source, block(given, given.get("reason"), given.get("attempts")), attempts(given))),
        "poison_record", (body, given) -> bytes(Splice.poisonRecord(body, block(given, "poison", Num.of(0))))));

    private Main() {}

    private static Map<String, Object> decode(Envelope found) {
        Map<String, Object> result = new HashMap<>(Map.of("verdict", found.verdict(), "reason", found.reason()));
        if (found.members() == null) {
            return result;
        }
        result.put("accepted", found.accepted());
        result.put("urn", found.members().get("job"));
        result.put("attempts", found.members().get("attempts"));
        result.put("lang", found.meta().get("lang"));
        result.put("schema_version", found.meta().get("schema_version"));
        result.put("warnings", found.warnings());
        for (String key : List.of("data", "dead_letter")) {
            if (found.members().containsKey(key)) {
                result.put(key + "_base64", base64(Canonical.value(found.members().get(key))));
            }
        }
        return result;
    }

    private static Map<String, Object> reencode(byte[] body, Map<String, Object> given)
            throws Envelope.Rejected, Document.Unreadable {
        Envelope found = Envelope.mustDecode(body);
        found.members().put("attempts", given.get("attempts"));
        String text = written(found.members());
        if (given.get("dead_letter") != null) {
            Map<String, Object> letter = Envelope.asObject(given.get("dead_letter"));
            Map<String, Object> block = block(letter, letter.get("reason"), given.get("attempts"));
            text = Splice.deadLetter(text, block, attempts(given));
        }
        Map<String, Object> result = bytes(text);
        result.put("warnings", found.warnings());
        return result;
    }

    private static String written(Map<String, Object> envelope) throws Envelope.Rejected {
        if (Canonical.overflows(envelope)) {
            throw new Envelope.Rejected("a number is beyond the range of a double", null);
        }
        return Canonical.envelope(envelope);
    }

    private static Map<String, Object> splice(byte[] body, Change change) throws Envelope.Rejected, Document.Unreadable {
        return bytes(change.apply(Envelope.mustDecode(body).document().source));
    }

    private static Map<String, Object> block(Map<String, Object> given, Object reason, Object attempts) {
        Map<String, Object> block = new HashMap<>();
        block.put("reason", reason);
        for (String key : List.of("error", "exception", "failed_at", "original_queue", "lang")) {
            block.put(key, given.get(key));
        }
        block.put("attempts", attempts);
        block.computeIfAbsent("failed_at", key -> Num.of(0));
        block.computeIfAbsent("lang", key -> "java");
        return block;
    }

    private static String attempts(Map<String, Object> given) {
        return ((Num) given.get("attempts")).text();
    }

    private static Map<String, Object> bytes(String text) {
        return new HashMap<>(Map.of("bytes_base64", base64(text)));
    }

    private static String base64(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static Map<String, Object> run(Map<String, Object> request) {
        Map<String, Object> answer = new HashMap<>();
        answer.put("id", request.get("id"));
        String name = String.valueOf(request.get("operation"));
        if (!OPERATIONS.containsKey(name)) {
            answer.put("unsupported", "this subject does not offer `" + name + "`");
            return answer;
        }
        try {
            Map<String, Object> given = Envelope.asObject(request.get("given"));
            byte[] body = Base64.getDecoder().decode((String) given.getOrDefault("body_base64", ""));
            answer.put("result", OPERATIONS.get(name).run(body, given));
        } catch (Envelope.Rejected rejected) {
            Map<String, Object> result = new HashMap<>(Map.of("rejected", rejected.getMessage()));
            if (rejected.pointer != null && !rejected.pointer.isEmpty()) {
                result.put("pointer", rejected.pointer);
            }
            answer.put("result", result);
        } catch (Document.Unreadable | RuntimeException broken) {
            answer.put("error", broken.toString());
        }
        return answer;
    }

    private static Map<String, Object> start() {
        return Map.of("protocol", Num.of(1), "name", "tallystick-java", "version", System.getProperty("java.version"),
            "language", "java", "library", "jackson-core (grammar and tokens), canonical rules on top",
            "operations", new ArrayList<>(OPERATIONS.keySet()));
    }

    public static void main(String[] arguments) throws IOException, Document.Unreadable {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> request = Envelope.asObject(Document.read(line, null, 0).value);
            if ("stop".equals(request.get("op"))) {
                return;
            }
            out.print(Canonical.value("run".equals(request.get("op")) ? run(request) : start()) + "\n");
            out.flush();
        }
    }
}
