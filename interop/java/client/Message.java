import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.LongString;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** A message to send, and what both roles share: bodies, runs, digests, the clock, tagged values. */
record Message(AMQP.BasicProperties properties, byte[] body) {
  static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
  static final String TAGS = "tbsIlfdDSATFVx";

  /** Unix time in nanoseconds. */
  static long now() {
    Instant instant = Instant.now();
    return instant.getEpochSecond() * 1_000_000_000L + instant.getNano();
  }

  /** Give n bytes of message i: the first 31 bytes of a hash, over and over. */
  static byte[] body(int seed, int i, int n) {
    byte[] pattern = sha().digest((seed + "." + i).getBytes(StandardCharsets.UTF_8));
    byte[] out = new byte[n];
    for (int at = 0; at < n; at++) out[at] = pattern[at % 31];
    return out;
  }

  /** Write numbers as they happened, ascending neighbours together: 0-3,5,4,6-49. */
  static String runs(List<Integer> numbers) {
    List<String> out = new ArrayList<>();
    for (int i = 0, j = 0; i < numbers.size(); i = ++j) {
      while (j + 1 < numbers.size() && numbers.get(j + 1) == numbers.get(j) + 1) j++;
      out.add(j > i ? numbers.get(i) + "-" + numbers.get(j) : String.valueOf(numbers.get(i)));
    }
    return String.join(",", out);
  }

  private static MessageDigest sha() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible); // every Java platform has it
    }
  }

  static String sha256(byte[] body) {
    return HexFormat.of().formatHex(sha().digest(body));
  }

  /** The digest of a list of bodies; empty where only counts are asked for. */
  static final class Digest {
    private final MessageDigest sum;

    Digest(String check) {
      sum = check.equals("hash") ? sha() : null;
    }

    synchronized void add(byte[] body) {
      if (sum != null) sum.update(sha().digest(body));
    }

    synchronized String text() {
      if (sum == null) return "";
      try {
        return HexFormat.of().formatHex(((MessageDigest) sum.clone()).digest());
      } catch (CloneNotSupportedException impossible) {
        throw new IllegalStateException(impossible);
      }
    }
  }

  static JsonArray row(Object... values) {
    return GSON.toJsonTree(values).getAsJsonArray();
  }

  /** Read a header of any integer type. */
  static long integer(Object value, long otherwise) {
    return value instanceof Number number ? number.longValue() : otherwise;
  }

  static String text(Object value) {
    return value == null ? null : value.toString();
  }

  /** Give the tagged form; the library reads uint8 and uint16 as Integer and uint32 as Long. */
  private static JsonArray tag(Object value) {
    if (value instanceof Boolean flag) return row("t", flag);
    if (value instanceof Byte number) return row("b", number.toString());
    if (value instanceof Short number) return row("s", number.toString());
    if (value instanceof Integer || value instanceof Long) return row("*", value.toString());
    if (value instanceof Float number) return row("f", String.format("0x%08x", Float.floatToRawIntBits(number)));
    if (value instanceof Double number) return row("d", String.format("0x%016x", Double.doubleToRawLongBits(number)));
    if (value instanceof BigDecimal number) return row("D", String.valueOf(number.scale()), number.unscaledValue().toString());
    if (value instanceof Date date) return row("T", String.valueOf(date.getTime() / 1000));
    if (value instanceof byte[] bytes) return row("x", HexFormat.of().formatHex(bytes));
    if (value instanceof LongString string) return tagString(string.getBytes());
    if (value instanceof List<?> list) return row("A", list.stream().map(Message::tag).toList());
    if (value instanceof Map<?, ?> map) return row("F", tagTable(map));
    return row("V");
  }

  private static JsonArray tagString(byte[] bytes) {
    try {
      return row("S", StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString());
    } catch (CharacterCodingException notText) {
      return row("x", HexFormat.of().formatHex(bytes));
    }
  }

  static JsonObject tagTable(Map<?, ?> table) {
    JsonObject out = new JsonObject();
    table.forEach((name, value) -> out.add(name.toString(), tag(value)));
    return out;
  }

  /** Give the library's header table for a tagged one. */
  static Map<String, Object> untagTable(JsonObject table) {
    Map<String, Object> out = new HashMap<>();
    table.entrySet().forEach(one -> out.put(one.getKey(), untag(one.getValue().getAsJsonArray())));
    return out;
  }

  /** Give a type in a tagged table that the library cannot write, or null. */
  static String unwritable(JsonObject table) {
    for (Map.Entry<String, JsonElement> one : table.entrySet()) {
      String found = unwritable(one.getValue().getAsJsonArray());
      if (found != null) return found;
    }
    return null;
  }

  private static String unwritable(JsonArray tagged) {
    String tag = tagged.get(0).getAsString();
    if (!TAGS.contains(tag)) return tag;
    if (tag.equals("F")) return unwritable(tagged.get(1).getAsJsonObject());
    if (!tag.equals("A")) return null;
    for (JsonElement one : tagged.get(1).getAsJsonArray()) {
      String found = unwritable(one.getAsJsonArray());
      if (found != null) return found;
    }
    return null;
  }

  private static Object untag(JsonArray tagged) {
    String tag = tagged.get(0).getAsString();
    JsonElement value = tagged.size() > 1 ? tagged.get(1) : null;
    return switch (tag) {
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
      case "A" -> value.getAsJsonArray().asList().stream().map(one -> untag(one.getAsJsonArray())).collect(ArrayList::new, ArrayList::add, ArrayList::addAll);
      case "F" -> untagTable(value.getAsJsonObject());
      default -> throw new IllegalArgumentException("amqp-client has no header value of type " + tag);
    };
  }
}
