import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.cloudevents.CloudEvent;
import io.cloudevents.core.format.EventDeserializationException;
import io.cloudevents.core.format.EventFormat;
import io.cloudevents.core.format.EventSerializationException;
import io.cloudevents.jackson.JsonFormat;
import io.cloudevents.protobuf.ProtobufFormat;
import io.cloudevents.rw.CloudEventRWException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;

/**
 * The Java SDK `io.cloudevents` as a subject: JSON (Jackson) and Protobuf events. A rejection is an
 * exception of the SDK's own kind that was not caused by a slip in the SDK itself (a null pointer, a
 * wrong cast, an index); anything else thrown is an error.
 */
final class Main {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, EventFormat> FORMATS =
            Map.of("json", new JsonFormat(), "protobuf", new ProtobufFormat());

    /** A declaration, not an error: what the SDK does not offer, and why. */
    private static final class Unsupported extends Exception {
        private static final long serialVersionUID = 1L;

        Unsupported(String reason) {
            super(reason);
        }
    }

    private Main() {}

    private static EventFormat find(JsonNode given) throws Unsupported {
        String format = given.get("format").asText();
        if (!FORMATS.containsKey(format)) {
            throw new Unsupported("io.cloudevents " + version() + " has no " + format + " format here");
        }
        if (given.path("kind").asText().equals("batch") || given.has("events")) {
            throw new Unsupported("io.cloudevents has no batches");
        }
        if (given.path("extensions").asBoolean() || given.path("constraints").asBoolean()) {
            throw new Unsupported("io.cloudevents cannot declare the types of extensions");
        }
        return FORMATS.get(format);
    }

    private static ObjectNode read(JsonNode given) throws Unsupported, IOException {
        EventFormat format = find(given);
        CloudEvent event = format.deserialize(Base64.getDecoder().decode(given.get("body_base64").asText()));
        return JSON.createObjectNode().set("event", Neutral.show(event));
    }

    private static ObjectNode write(JsonNode given) throws Unsupported {
        EventFormat format = find(given);
        CloudEvent event;
        try {
            event = Neutral.build(given.get("event")).build();
        } catch (IllegalStateException no) { // what the builder declares for a missing attribute
            return JSON.createObjectNode().put("rejected", no.toString());
        }
        byte[] body = format.serialize(event);
        return JSON.createObjectNode().put("bytes_base64", Base64.getEncoder().encodeToString(body));
    }

    private static ObjectNode answer(JsonNode request) {
        ObjectNode reply = JSON.createObjectNode().set("id", request.get("id"));
        String operation = request.get("operation").asText();
        try {
            switch (operation) {
                case "ce_read" -> reply.set("result", read(request.get("given")));
                case "ce_write" -> reply.set("result", write(request.get("given")));
                default -> reply.put("unsupported", "no operation " + operation);
            }
        } catch (Unsupported reason) {
            reply.put("unsupported", reason.getMessage());
        } catch (CloudEventRWException | EventDeserializationException | EventSerializationException no) {
            if (isSlip(no)) {
                reply.put("error", no.toString());
            } else {
                reply.set("result", JSON.createObjectNode().put("rejected", no.toString()));
            }
        } catch (IOException | RuntimeException | StackOverflowError broken) {
            reply.put("error", broken.toString());
        }
        return reply;
    }

    private static boolean isSlip(Throwable thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof NullPointerException
                    || cause instanceof ClassCastException
                    || cause instanceof IndexOutOfBoundsException) {
                return true;
            }
        }
        return false;
    }

    private static String version() {
        String jar = CloudEventRWException.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceAll(".*cloudevents-api-(.*)\\.jar", "$1");
    }

    private static ObjectNode identity() {
        ObjectNode identity = JSON.createObjectNode().put("protocol", 1);
        identity.put("name", "cloudevents-java").put("version", version());
        identity.put("language", "java").put("library", "jackson, protobuf-java");
        identity.putArray("operations").add("ce_read").add("ce_write");
        return identity;
    }

    public static void main(String[] arguments) throws IOException {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode request = JSON.readTree(line);
            String op = request.get("op").asText();
            if (op.equals("stop")) {
                return;
            }
            output.print(JSON.writeValueAsString(op.equals("run") ? answer(request) : identity()) + "\n");
            output.flush();
        }
    }
}
