import java.util.Base64;
import java.util.List;
import java.util.Map;

/**
 * Splicing: bytes are sacred. A retry, a redrive and a dead letter change the members they must and
 * leave every other byte as it came; what is not an object travels inside a wrapper. The body is
 * valid UTF-8 here, so a splice of its text is a splice of its bytes.
 */
final class Splice {
    private Splice() {}

    static String attempts(String source, String attempts) throws Document.Unreadable {
        List<Document.Member> members = Document.read(source, null, 0).members;
        for (int index = members.size() - 1; index >= 0; index--) {
            Document.Member at = members.get(index);
            if (at.key().equals("attempts")) {
                return source.substring(0, at.value()) + attempts + source.substring(at.end());
            }
        }
        return addMember(source, "\"attempts\":" + attempts, true);
    }

    static String redrive(String source) throws Document.Unreadable {
        return attempts(withoutDeadLetter(source), "0");
    }

    static String deadLetter(String source, Map<String, Object> block, String attempts) throws Document.Unreadable {
        String counted = attempts(trim(withoutDeadLetter(source)), attempts);
        return addMember(counted, "\"dead_letter\":" + Canonical.deadLetter(block), true);
    }

    static String poisonRecord(byte[] body, Map<String, Object> block) {
        String letter = "\"dead_letter\":" + Canonical.deadLetter(block);
        String source;
        try {
            source = Document.utf8Text(body);
        } catch (Document.Unreadable notText) {
            String raw = Base64.getEncoder().encodeToString(body);
            return "{\"raw\":\"" + raw + "\",\"raw_encoding\":\"base64\"," + letter + "}";
        }
        try {
            Object value = Document.read(source, null, 0).value;
            if (value instanceof Map<?, ?> object && !object.containsKey("dead_letter")) {
                return addMember(trim(source), letter, !object.isEmpty());
            }
            return wrapped(source, letter);
        } catch (Document.Unreadable notJson) {
            return wrapped(source, letter);
        }
    }

    private static String wrapped(String source, String letter) {
        return "{\"raw\":" + Canonical.value(source) + "," + letter + "}";
    }

    /**
     * Cuts every top-level `dead_letter` with one comma: from the comma before it, or up to the
     * next member when nothing that stays stands before.
     */
    private static String withoutDeadLetter(String source) throws Document.Unreadable {
        List<Document.Member> members = Document.read(source, null, 0).members;
        StringBuilder out = new StringBuilder();
        int from = 0;
        boolean kept = false;
        for (int index = 0; index < members.size(); index++) {
            Document.Member at = members.get(index);
            if (!at.key().equals("dead_letter")) {
                kept = true;
                continue;
            }
            boolean last = index == members.size() - 1;
            out.append(source, from, kept ? source.indexOf(',', members.get(index - 1).end()) : at.start());
            from = kept || last ? at.end() : members.get(index + 1).start();
        }
        return out.append(source, from, source.length()).toString();
    }

    private static String addMember(String source, String text, boolean comma) {
        int end = source.lastIndexOf('}');
        return source.substring(0, end) + (comma ? "," : "") + text + source.substring(end);
    }

    private static String trim(String source) {
        return source.replaceAll("^[ \\t\\r\\n]+|[ \\t\\r\\n]+\\z", "");
    }
}
