import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Reading: exactly one strict RFC 8259 text in valid UTF-8, no lone surrogate escape, at most 1000
 * levels deep; the last duplicate wins; numbers keep their canonical text; the spans of the
 * top-level members are kept for splicing. Jackson judges the grammar and gives the tokens.
 */
final class Document {
    /** Where one top-level member stands: [start, end) with its value from `value` on. */
    record Member(String key, int start, int value, int end) {}

    /** What the contract asks of an object's members (facts 2.7), at every occurrence. */
    record Shape(String pointer, Map<String, String> types, Map<String, Shape> inside) {}

    /** The text is not strict JSON. */
    static final class Unreadable extends Exception {
        private static final long serialVersionUID = 1L;

        Unreadable(String reason) {
            super(reason);
        }
    }

    static final Shape DATA = new Shape("/data", Map.of(), Map.of());
    static final Shape ENVELOPE = new Shape("",
        Map.of("trace_id", "string", "attempts", "integer", "data", "object", "meta", "object", "dead_letter", "object"),
        Map.of(
            "data", DATA,
            "meta", new Shape("/meta", Map.of("id", "string", "queue", "string", "lang", "string",
                "schema_version", "integer", "created_at", "integer"), Map.of()),
            "dead_letter", new Shape("/dead_letter", Map.of("reason", "string", "error", "string",
                "exception", "string", "original_queue", "string", "lang", "string",
                "failed_at", "integer", "attempts", "integer"), Map.of())));

    private static final int MAX_DEPTH = 1000;
    private static final JsonFactory JACKSON = JsonFactory.builder()
        .streamReadConstraints(StreamReadConstraints.builder().maxNestingDepth(MAX_DEPTH + 1)
            .maxNumberLength(Integer.MAX_VALUE).maxStringLength(Integer.MAX_VALUE)
            .maxNameLength(Integer.MAX_VALUE).build())
        .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
        .build();

    final String source;
    final List<Member> members = new ArrayList<>();
    Object value;
    String problem;
    String pointer;
    private final JsonParser parser;

    /** Reads a text that `level` containers already surround; `shape` is null for plain JSON. */
    static Document read(String source, Shape shape, int level) throws Unreadable {
        try (JsonParser parser = JACKSON.createParser(source)) {
            if (parser.nextToken() == null) {
                throw new Unreadable("empty");
            }
            Document document = new Document(source, parser);
            document.value = document.value(shape, level);
            if (parser.nextToken() != null) {
                throw new Unreadable("more than one JSON value");
            }
            return document;
        } catch (JsonProcessingException broken) {
            throw new Unreadable(broken.getOriginalMessage());
        } catch (IOException broken) {
            throw new UncheckedIOException(broken);
        }
    }

    static String utf8Text(byte[] body) throws Unreadable {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
        } catch (CharacterCodingException broken) {
            throw new Unreadable("not valid UTF-8");
        }
    }

    private Document(String source, JsonParser parser) {
        this.source = source;
        this.parser = parser;
    }

    private Object value(Shape shape, int depth) throws IOException, Unreadable {
        JsonToken token = parser.currentToken();
        if (token.isStructStart() && depth == MAX_DEPTH) {
            throw new Unreadable("nested deeper than 1000 levels");
        }
        return switch (token) {
            case START_OBJECT -> object(shape, depth + 1);
            case START_ARRAY -> array(shape == DATA ? DATA : null, depth + 1);
            case VALUE_STRING -> wellFormed(parser.getText());
            case VALUE_TRUE -> true;
            case VALUE_FALSE -> false;
            case VALUE_NULL -> null;
            default -> number(parser.getText(), shape == DATA);
        };
    }

    private Map<String, Object> object(Shape shape, int depth) throws IOException, Unreadable {
        Map<String, Object> object = new HashMap<>();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            int start = (int) parser.currentTokenLocation().getCharOffset();
            String key = wellFormed(parser.currentName());
            parser.nextToken();
            int from = (int) parser.currentTokenLocation().getCharOffset();
            Shape inner = shape == DATA ? DATA : shape == null ? null : shape.inside.get(key);
            Object member = value(inner, depth);
            parser.finishToken();
            object.put(key, member);
            if (depth == 1) {
                members.add(new Member(key, start, from, (int) parser.currentLocation().getCharOffset()));
            }
            String type = shape == null ? null : shape.types.get(key);
            if (type != null && !isOf(type, member)) {
                complain("must be " + type + " or null", shape.pointer + "/" + key);
            }
        }
        return object;
    }

    private List<Object> array(Shape shape, int depth) throws IOException, Unreadable {
        List<Object> array = new ArrayList<>();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            array.add(value(shape, depth));
        }
        return array;
    }

    private Num number(String literal, boolean inData) {
        Num number = Num.of(literal);
        if (!number.finite() && inData) {
            complain("a number inside data is beyond the range of a double", "");
        }
        return number;
    }

    private void complain(String reason, String place) {
        if (problem == null) {
            problem = reason;
            pointer = place;
        }
    }

    private static boolean isOf(String type, Object value) {
        return value == null || switch (type) {
            case "string" -> value instanceof String;
            case "object" -> value instanceof Map;
            default -> value instanceof Num number && number.isLong();
        };
    }

    private static String wellFormed(String text) throws Unreadable {
        for (int index = 0; index < text.length(); index++) {
            char unit = text.charAt(index);
            boolean pair = Character.isHighSurrogate(unit) && index + 1 < text.length()
                && Character.isLowSurrogate(text.charAt(index + 1));
            if (pair) {
                index++;
            } else if (Character.isSurrogate(unit)) {
                throw new Unreadable("a lone surrogate escape");
            }
        }
        return text;
    }
}
