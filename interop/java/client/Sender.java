import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** The sender: publishers with a channel each, barriers, and the report of what was sent. */
final class Sender extends Played {
  private final Main client;
  private final String test;
  private final Main.Parameters p;
  private final String correlationId;
  private final List<Publisher> publishers = new ArrayList<>();
  private final JsonArray destinations;
  private final boolean transactional;
  private Connection connection;
  private Map<String, Object> extra = Map.of();
  private long started;
  private long ended;

  private static final class Publisher {
    Channel channel;
    int pending;
    final List<Integer> numbers = new ArrayList<>();
    final Message.Digest digest;
    final JsonArray returned = new JsonArray();

    Publisher(String check) {
      digest = new Message.Digest(check);
    }
  }

  Sender(Main client, String test, Main.Parameters p, String correlationId) {
    this.client = client;
    this.test = test;
    this.p = p;
    this.correlationId = correlationId;
    this.destinations = p.list("destinations");
    this.transactional = p.flag("transactional", false);
  }

  @Override
  void open() throws IOException {
    if (p.given().has("header_fields")) extra = Message.untagTable(p.given().getAsJsonObject("header_fields"));
    if (!p.text("pattern", "p2p").equals("none")) connection = client.open();
    for (int index = 0; index < p.number("num_publishers", 1); index++) {
      Publisher one = new Publisher(p.text("check", "hash"));
      publishers.add(one);
      if (connection == null) continue;
      one.channel = connection.createChannel();
      int publisher = index;
      one.channel.addReturnListener(message -> {
        Map<String, Object> headers = message.getProperties().getHeaders();
        JsonArray row = new JsonArray();
        row.add(publisher);
        row.add(headers == null ? -1 : (int) Message.integer(headers.get("SEQUENCE"), -1));
        row.add(message.getReplyCode());
        synchronized (one.returned) {
          one.returned.add(row);
        }
      });
      if (transactional) one.channel.txSelect();
      else one.channel.confirmSelect();
    }
  }

  @Override
  public Main.Report start(Map<String, Object> headers) {
    int first = (int) Message.integer(headers.get("FIRST"), 0);
    int count = (int) Message.integer(headers.get("MESSAGE_COUNT"), p.number("num_messages", 100));
    String tx = Message.text(headers.getOrDefault("TX", "commit"));
    if (started == 0) started = Message.now();
    if (connection != null) {
      IntStream.range(0, publishers.size()).mapToObj(index -> {
        Thread thread = new Thread(() -> {
          try {
            publish(index, first, destinations.isEmpty() ? 0 : count, tx);
          } catch (IOException | RuntimeException error) {
            fail(error);
          }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
      }).toList().forEach(Sender::join);
    }
    ended = Message.now();
    return status(headers);
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  private void publish(int index, int first, int count, String tx) throws IOException {
    Publisher one = publishers.get(index);
    double rate = p.rate("outgoing_rate");
    long begun = System.nanoTime();
    boolean commits = transactional && tx.equals("commit");
    for (int i = 0; i < count; i++) {
      if (rate > 0) pause(begun + (long) (i / rate * 1e9) - System.nanoTime());
      int sequence = first + i;
      JsonObject to = destinations.get((index + sequence) % destinations.size()).getAsJsonObject();
      Message message = make(index, sequence);
      one.channel.basicPublish(
          to.get("exchange").getAsString(), to.get("key").getAsString(), p.flag("mandatory", false),
          p.flag("immediate", false), message.properties(), message.body());
      one.numbers.add(sequence);
      one.digest.add(message.body());
      if (commits && ++one.pending == p.number("tx_batch_size", 100)) {
        one.channel.txCommit();
        one.pending = 0;
      }
    }
    settle(one, tx);
  }

  /** The barrier: confirms or the end of the transaction, then one synchronous call. */
  private void settle(Publisher one, String tx) throws IOException {
    try {
      if (!transactional) one.channel.waitForConfirms();
    } catch (InterruptedException stopped) {
      throw new InterruptedIOException();
    }
    if (transactional && tx.equals("commit")) one.channel.txCommit();
    if (transactional && tx.equals("rollback")) one.channel.txRollback();
    one.pending = 0;
    one.channel.basicQos(0);
  }

  static void pause(long nanoseconds) throws IOException {
    try {
      if (nanoseconds > 0) Thread.sleep(nanoseconds / 1_000_000, (int) (nanoseconds % 1_000_000));
    } catch (InterruptedException stopped) {
      throw new InterruptedIOException();
    }
  }

  private Message make(int publisher, int sequence) {
    if (test.equals("Envelope")) return envelope(Base64.getDecoder().decode(cycle("envelopes", sequence).getAsString()));
    AMQP.BasicProperties.Builder builder = new AMQP.BasicProperties.Builder().correlationId(correlationId);
    if (test.equals("FieldTable")) {
      return new Message(builder.headers(Message.untagTable(cycle("tables", sequence).getAsJsonObject())).build(), new byte[0]);
    }
    Map<String, Object> headers = new HashMap<>(extra);
    headers.put("CLIENT_NAME", client.name);
    headers.put("PUBLISHER", publisher);
    headers.put("SEQUENCE", sequence);
    if (p.flag("stamp", false)) headers.put("SENT_NS", Message.now());
    builder.headers(headers).contentType("application/octet-stream").deliveryMode(p.flag("persistent", false) ? 2 : 1);
    return new Message(builder.build(), Message.body(p.number("seed", 1), sequence, p.number("message_bytes", 0)));
  }

  private JsonElement cycle(String name, int sequence) {
    return p.list(name).get(sequence % p.list(name).size());
  }

  /** Project a canonical envelope by the RabbitMQ binding; the body is not touched. */
  private static Message envelope(byte[] body) {
    JsonObject read = JsonParser.parseString(new String(body, StandardCharsets.UTF_8)).getAsJsonObject();
    JsonObject meta = read.get("meta") instanceof JsonObject there ? there : new JsonObject();
    Map<String, Object> headers = new HashMap<>();
    if (there(meta, "schema_version")) headers.put("x-schema-version", meta.get("schema_version").getAsInt());
    if (there(read, "attempts")) headers.put("x-attempts", read.get("attempts").getAsInt());
    if (there(meta, "lang")) headers.put("x-source-lang", meta.get("lang").getAsString());
    return new Message(new AMQP.BasicProperties.Builder()
        .headers(headers).type(text(read, there(read, "job") ? "job" : "urn")).correlationId(text(read, "trace_id"))
        .messageId(text(meta, "id")).appId("babelqueue").contentType("application/json")
        .contentEncoding("utf-8").deliveryMode(2).build(), body);
  }

  private static boolean there(JsonObject object, String name) {
    return object.has(name) && !object.get(name).isJsonNull();
  }

  private static String text(JsonObject object, String name) {
    return there(object, name) ? object.get(name).getAsString() : null;
  }

  @Override
  public Main.Report status(Map<String, Object> headers) {
    if (!Boolean.FALSE.equals(headers.get("FINAL")) || hasFailed()) close();
    return report();
  }

  @Override
  void release() {
    if (connection != null) connection.abort(10_000);
  }

  @Override
  Main.Report report() {
    JsonObject out = told("sender");
    JsonArray returned = new JsonArray();
    int count = 0;
    for (Publisher one : publishers) {
      count += one.numbers.size();
      synchronized (one.returned) {
        returned.addAll(one.returned);
      }
    }
    out.add("sent", Message.GSON.toJsonTree(publishers.stream().map(one -> Message.runs(one.numbers)).toList()));
    out.add("digests", Message.GSON.toJsonTree(publishers.stream().map(one -> one.digest.text()).toList()));
    out.add("returned", returned);
    out.addProperty("started_ns", started == 0 ? "" : String.valueOf(started));
    out.addProperty("ended_ns", ended == 0 ? "" : String.valueOf(ended));
    return new Main.Report(count, correlationId, out);
  }
}
