import com.google.gson.*;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.LongString;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.*;
import java.util.function.Function;

/** A message to send, and how messages are made and read: bodies, envelopes, tagged values. */
record Message(AMQP.BasicProperties properties, byte[] body) {
  private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

  static byte[] json(Object value) {
    return GSON.toJson(value).getBytes(StandardCharsets.UTF_8);
  }

  static JsonObject parse(byte[] text) {
    return JsonParser.parseString(new String(text, StandardCharsets.UTF_8)).getAsJsonObject();
  }

  static Map<String, Object> headers(Delivery message) {
    var found = message.getProperties().getHeaders();
    return found == null ? Map.of() : found;
  }

  /** Unix time in nanoseconds. */
  static long now() {
    Instant instant = Instant.now();
    return instant.getEpochSecond() * 1_000_000_000L + instant.getNano();
  }

  private static byte[] digest(byte[] body) throws Exception {
    return MessageDigest.getInstance("SHA-256").digest(body);
  }

  static String sha256(byte[] body) throws Exception {
    return HexFormat.of().formatHex(digest(body));
  }

  /** Give the body of a message: the first 31 bytes of a hash, over and over. */
  static byte[] body(int seed, int sequence, int size) throws Exception {
    byte[] pattern = digest((seed + "." + sequence).getBytes(StandardCharsets.UTF_8));
    byte[] out = new byte[size];
    for (int at = 0; at < size; at += 31) System.arraycopy(pattern, 0, out, at, Math.min(31, size - at));
    return out;
  }

  /** Carry an envelope as the RabbitMQ binding says; what is absent stays absent. */
  static Message project(String encoded) {
    byte[] body = Base64.getDecoder().decode(encoded);
    var read = parse(body);
    var meta = read.get("meta") instanceof JsonObject there ? there : new JsonObject();
    var headers = new HashMap<String, Object>();
    headers.put("x-schema-version", of(meta, "schema_version", JsonElement::getAsInt));
    headers.put("x-attempts", of(read, "attempts", JsonElement::getAsInt));
    headers.put("x-source-lang", text(meta, "lang"));
    headers.values().removeIf(Objects::isNull);
    String job = read.get("job") instanceof JsonPrimitive said && said.isString() ? said.getAsString() : "";
    return new Message(new AMQP.BasicProperties.Builder()
        .headers(headers).type(job.matches("\\s*") ? text(read, "urn") : job).correlationId(text(read, "trace_id"))
        .messageId(text(meta, "id")).appId("babelqueue").contentType("application/json")
        .contentEncoding("utf-8").deliveryMode(2).build(), body);
  }

  private static String text(JsonObject object, String name) {
    return of(object, name, JsonElement::getAsString);
  }

  private static <T> T of(JsonObject object, String name, Function<JsonElement, T> read) {
    var value = object.get(name);
    return value == null || value.isJsonNull() ? null : read.apply(value);
  }

  /** Give the properties that are set. */
  static Map<String, Object> set(AMQP.BasicProperties from) {
    Object[] pairs = {
      "content_type", from.getContentType(), "content_encoding", from.getContentEncoding(),
      "delivery_mode", from.getDeliveryMode(), "priority", from.getPriority(),
      "correlation_id", from.getCorrelationId(), "reply_to", from.getReplyTo(),
      "expiration", from.getExpiration(), "message_id", from.getMessageId(),
      "type", from.getType(), "user_id", from.getUserId(), "app_id", from.getAppId(),
    };
    var found = new HashMap<String, Object>();
    for (int at = 0; at < pairs.length; at += 2) found.put((String) pairs[at], pairs[at + 1]);
    found.values().removeIf(Objects::isNull);
    return found;
  }

  /** Give the tagged form; the library reads uint8 and uint16 as Integer and uint32 as Long. */
  private static List<Object> tag(Object value) {
    if (value instanceof Boolean) return List.of("t", value);
    if (value instanceof Byte) return List.of("b", value.toString());
    if (value instanceof Short) return List.of("s", value.toString());
    if (value instanceof Integer || value instanceof Long) return List.of("*", value.toString());
    if (value instanceof Float it) return List.of("f", String.format("0x%08x", Float.floatToRawIntBits(it)));
    if (value instanceof Double it) return List.of("d", String.format("0x%016x", Double.doubleToRawLongBits(it)));
    if (value instanceof BigDecimal number) return List.of("D", "" + number.scale(), "" + number.unscaledValue());
    if (value instanceof Date date) return List.of("T", "" + date.getTime() / 1000);
    if (value instanceof byte[] bytes) return List.of("x", HexFormat.of().formatHex(bytes));
    if (value instanceof LongString string) return tagString(string.getBytes());
    if (value instanceof List<?> list) return List.of("A", list.stream().map(Message::tag).toList());
    if (value instanceof Map<?, ?> map) return List.of("F", tagTable(map));
    return List.of("V");
  }

  private static List<Object> tagString(byte[] bytes) {
    try {
      return List.of("S", StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString());
    } catch (CharacterCodingException notText) {
      return List.of("x", HexFormat.of().formatHex(bytes));
    }
  }

  static Map<String, Object> tagTable(Map<?, ?> table) {
    Map<String, Object> out = new HashMap<>();
    if (table != null) table.forEach((name, value) -> out.put(name.toString(), tag(value)));
    return out;
  }

  /** Give the library's header table for a tagged one. */
  static Map<String, Object> untagTable(JsonObject table) {
    Map<String, Object> out = new HashMap<>();
    table.entrySet().forEach(one -> out.put(one.getKey(), untag(one.getValue().getAsJsonArray())));
    return out;
  }

  private static Object untag(JsonArray tagged) {
    JsonElement value = tagged.size() > 1 ? tagged.get(1) : null;
    return switch (tagged.get(0).getAsString()) {
      case "t" -> value.getAsBoolean();
      case "b" -> value.getAsByte();
      case "s" -> value.getAsShort();
      case "I" -> value.getAsInt();
      case "l" -> value.getAsLong();
      case "f" -> Float.intBitsToFloat(new BigInteger(value.getAsString().substring(2), 16).intValue());
      case "d" -> Double.longBitsToDouble(new BigInteger(value.getAsString().substring(2), 16).longValue());
      case "D" -> new BigDecimal(new BigInteger(tagged.get(2).getAsString()), value.getAsInt());
      case "S" -> value.getAsString();
      case "T" -> new Date(value.getAsLong() * 1000);
      case "x" -> HexFormat.of().parseHex(value.getAsString());
      case "V" -> null;
      case "A" -> Arrays.asList(
          value.getAsJsonArray().asList().stream().map(item -> untag(item.getAsJsonArray())).toArray());
      case "F" -> untagTable(value.getAsJsonObject());
      default -> throw new IllegalArgumentException("amqp-client has no such header value: " + tagged);
    };
  }
}
