import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNullElse;

import com.google.gson.*;
import com.rabbitmq.client.*;
import java.math.*;
import java.security.MessageDigest;
import java.time.*;
import java.util.*;

/** A message to send, and how messages are made and read: bodies, envelopes, tagged values. */
record Message(AMQP.BasicProperties properties, byte[] body) {
  static final HexFormat HEX = HexFormat.of();
  private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping()
      .setFieldNamingPolicy(FieldNamingPolicy.LOWER_CASE_WITH_UNDERSCORES).create();
  private static final Map<Class<?>, String> SCALARS = Map.of(Boolean.class, "t", Byte.class, "b", Short.class, "s",
      Integer.class, "*", Long.class, "*", Float.class, "f", Double.class, "d");

  private record Meta(String id, String lang, Integer schemaVersion) { }
  private record Task(Object job, String urn, String traceId, Integer attempts, Meta meta) { }

  static String json(Object value) { return GSON.toJson(value); }
  static <T> T parse(byte[] text, Class<T> type) { return GSON.fromJson(new String(text, UTF_8), type); }
  static Map<String, Object> headers(AMQP.BasicProperties of) { return requireNonNullElse(of.getHeaders(), Map.of()); }

  /** Unix time in nanoseconds. */
  static long now() { return Duration.between(Instant.EPOCH, Instant.now()).toNanos(); }

  static byte[] sha256(byte[] of) throws Exception { return MessageDigest.getInstance("SHA-256").digest(of); }

  /** Give the body of a message: the first 31 bytes of a hash, over and over. */
  static byte[] body(int seed, int sequence, int size) throws Exception {
    byte[] pattern = sha256((seed + "." + sequence).getBytes(UTF_8));
    byte[] out = new byte[size];
    for (int at = 0; at < size; at += 31) System.arraycopy(pattern, 0, out, at, Math.min(31, size - at));
    return out;
  }

  /** Give a map of names and values, in turn, without the values that are null. */
  static Map<String, Object> present(Object... pairs) {
    var found = new HashMap<String, Object>();
    for (int at = 0; at < pairs.length; at += 2) found.put((String) pairs[at], pairs[at + 1]);
    found.values().removeIf(Objects::isNull);
    return found;
  }

  /** Carry an envelope as the RabbitMQ binding says; what is absent stays absent. */
  static Message project(String encoded) {
    byte[] body = Base64.getDecoder().decode(encoded);
    var read = parse(body, Task.class);
    var meta = requireNonNullElse(read.meta(), new Meta(null, null, null));
    var headers = present(
        "x-schema-version", meta.schemaVersion(), "x-attempts", read.attempts(), "x-source-lang", meta.lang());
    return new Message(new AMQP.BasicProperties.Builder()
        .headers(headers).type(read.job() instanceof String job && !job.matches("\\s*") ? job : read.urn())
        .correlationId(read.traceId()).messageId(meta.id()).appId("babelqueue").contentType("application/json")
        .contentEncoding("utf-8").deliveryMode(2).build(), body);
  }

  /** Give the properties that are set. */
  static Map<String, Object> set(AMQP.BasicProperties from) {
    return present(
        "content_type", from.getContentType(), "content_encoding", from.getContentEncoding(),
        "delivery_mode", from.getDeliveryMode(), "priority", from.getPriority(),
        "correlation_id", from.getCorrelationId(), "reply_to", from.getReplyTo(), "expiration", from.getExpiration(),
        "message_id", from.getMessageId(), "type", from.getType(), "user_id", from.getUserId(),
        "app_id", from.getAppId());
  }

  /** Give the tagged form; the library reads uint8 and uint16 as Integer and uint32 as Long. */
  private static List<Object> tag(Object value) {
    if (value == null) return List.of("V");
    if (SCALARS.containsKey(value.getClass())) return List.of(SCALARS.get(value.getClass()), value.toString());
    if (value instanceof BigDecimal number) return List.of("D", "" + number.scale(), "" + number.unscaledValue());
    if (value instanceof Date date) return List.of("T", "" + date.getTime() / 1000);
    if (value instanceof byte[] bytes) return List.of("x", HEX.formatHex(bytes));
    if (value instanceof List<?> list) return List.of("A", list.stream().map(Message::tag).toList());
    if (value instanceof Map<?, ?> map) return List.of("F", tagTable(map));
    byte[] raw = ((LongString) value).getBytes();
    return Arrays.equals(raw, value.toString().getBytes(UTF_8)) ? List.of("S", value.toString()) : tag(raw);
  }

  static Map<String, Object> tagTable(Map<?, ?> table) {
    var out = new HashMap<String, Object>();
    table.forEach((name, value) -> out.put(name.toString(), tag(value)));
    return out;
  }

  /** Give the library's header table for a tagged one. */
  static Map<String, Object> untagTable(JsonObject table) {
    var out = new HashMap<String, Object>();
    table.asMap().forEach((name, value) -> out.put(name, untag(value.getAsJsonArray())));
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
      case "f" -> value.getAsFloat();
      case "d" -> value.getAsDouble();
      case "D" -> new BigDecimal(tagged.get(2).getAsBigInteger(), value.getAsInt());
      case "S" -> value.getAsString();
      case "T" -> new Date(value.getAsLong() * 1000);
      case "x" -> HEX.parseHex(value.getAsString());
      case "A" -> Arrays.asList(value.getAsJsonArray().asList().stream().map(it -> untag((JsonArray) it)).toArray());
      case "F" -> untagTable(value.getAsJsonObject());
      case "V" -> null;
      default -> throw new IllegalArgumentException("amqp-client has no such header value: " + tagged);
    };
  }
}
