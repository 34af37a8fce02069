import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.cloudevents.CloudEvent;
import io.cloudevents.CloudEventData;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.core.data.BytesCloudEventData;
import io.cloudevents.jackson.JsonCloudEventData;
import io.cloudevents.types.Time;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.Map;

/** The neutral form of an event (docs/reference/events-protocol.md) and the SDK's own. */
final class Neutral {
    private Neutral() {}

    static ObjectNode show(CloudEvent event) throws IOException {
        ObjectNode shown = Main.JSON.createObjectNode();
        put(shown, "specversion", event.getSpecVersion());
        put(shown, "id", event.getId());
        put(shown, "source", event.getSource());
        put(shown, "type", event.getType());
        put(shown, "datacontenttype", event.getDataContentType());
        put(shown, "dataschema", event.getDataSchema());
        put(shown, "subject", event.getSubject());
        put(shown, "time", event.getTime() == null ? null : Time.writeTime(event.getTime()));
        if (!event.getExtensionNames().isEmpty()) {
            ObjectNode extensions = shown.putObject("extensions");
            for (String name : event.getExtensionNames()) {
                showValue(extensions.putObject(name), event.getExtension(name));
            }
        }
        if (event.getData() != null) {
            showData(shown.putObject("data"), event.getData());
        }
        return shown;
    }

    private static void put(ObjectNode shown, String name, Object value) {
        if (value != null) {
            shown.put(name, value.toString());
        }
    }

    /** The SDK has one class for URI and URI-reference; an absolute one is shown as a URI. */
    private static void showValue(ObjectNode typed, Object value) {
        if (value instanceof Boolean one) {
            typed.put("Boolean", one);
        } else if (value instanceof Integer one) {
            typed.put("Integer", one);
        } else if (value instanceof String one) {
            typed.put("String", one);
        } else if (value instanceof byte[] one) {
            typed.put("Binary", Base64.getEncoder().encodeToString(one));
        } else if (value instanceof URI one) {
            typed.put(one.isAbsolute() ? "URI" : "URI-reference", one.toString());
        } else if (value instanceof OffsetDateTime one) {
            typed.put("Timestamp", Time.writeTime(one));
        } else {
            typed.put(value.getClass().getSimpleName(), value.toString());
        }
    }

    private static void showData(ObjectNode shown, CloudEventData data) throws IOException {
        if (data instanceof JsonCloudEventData json) {
            shown.set("json", json.getNode());
        } else {
            shown.put("base64", Base64.getEncoder().encodeToString(data.toBytes()));
        }
    }

    static CloudEventBuilder build(JsonNode shown) {
        CloudEventBuilder builder = CloudEventBuilder.v1();
        for (Map.Entry<String, JsonNode> member : shown.properties()) {
            switch (member.getKey()) {
                case "extensions" -> member.getValue().properties().forEach(one -> extend(builder, one));
                case "data" -> builder.withData(data(member.getValue()));
                case "specversion" -> { } // the builder's version is the only one it has
                default -> builder.withContextAttribute(member.getKey(), member.getValue().asText());
            }
        }
        return builder;
    }

    private static void extend(CloudEventBuilder builder, Map.Entry<String, JsonNode> extension) {
        String name = extension.getKey();
        Map.Entry<String, JsonNode> typed = extension.getValue().properties().iterator().next();
        JsonNode value = typed.getValue();
        switch (typed.getKey()) {
            case "Boolean" -> builder.withExtension(name, Boolean.valueOf(value.asBoolean()));
            case "Integer" -> builder.withExtension(name, value.numberValue());
            case "Binary" -> builder.withExtension(name, Base64.getDecoder().decode(value.asText()));
            case "URI", "URI-reference" -> builder.withExtension(name, URI.create(value.asText()));
            case "Timestamp" -> builder.withExtension(name, Time.parseTime(value.asText()));
            default -> builder.withExtension(name, value.asText());
        }
    }

    private static CloudEventData data(JsonNode data) {
        Map.Entry<String, JsonNode> typed = data.properties().iterator().next();
        String text = typed.getValue().asText();
        return switch (typed.getKey()) {
            case "json" -> JsonCloudEventData.wrap(typed.getValue());
            case "base64" -> BytesCloudEventData.wrap(Base64.getDecoder().decode(text));
            default -> BytesCloudEventData.wrap(text.getBytes(StandardCharsets.UTF_8));
        };
    }
}
