import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The receiver: consumers with a connection each, ack modes, and the report of what arrived. */
final class Receiver extends Played {
  private final Main client;
  private final Main.Parameters p;
  private final String ackMode;
  private final String check;
  private final boolean echoes;
  private final List<Consumer> consumers = new ArrayList<>();
  private final Map<Key, Stream> streams = new LinkedHashMap<>();
  private final JsonArray unexpected = new JsonArray();
  private final JsonArray echo = new JsonArray();
  private final Map<String, Integer> latency = new TreeMap<>();
  private int count;
  private int left;
  private long first;
  private long last;

  private record Key(int consumer, String sender, String correlationId, int publisher) {}

  private static final class Stream {
    final List<Integer> received = new ArrayList<>();
    final List<Integer> redelivered = new ArrayList<>();
    final JsonArray altered = new JsonArray();
    final Message.Digest digest;

    Stream(String check) {
      digest = new Message.Digest(check);
    }
  }

  Receiver(Main client, Main.Parameters p) {
    this.client = client;
    this.p = p;
    this.ackMode = p.text("ack_mode", "auto");
    this.check = p.text("check", "hash");
    this.echoes = p.flag("echo", false);
  }

  @Override
  void open() throws IOException {
    if (p.text("pattern", "p2p").equals("none") || !p.flag("consumer_out_active", true)) return;
    for (JsonElement element : p.list("consumers")) {
      JsonObject place = element.getAsJsonObject();
      Connection connection = client.open();
      Consumer one = new Consumer(connection, connection.createChannel(), place.get("index").getAsInt());
      consumers.add(one);
      one.begin(p.list("destinations").get(place.get("destination").getAsInt()).getAsJsonObject());
    }
  }

  private final class Consumer extends DefaultConsumer {
    final Connection connection;
    final Channel channel;
    final int index;
    final String tag;
    final CountDownLatch ended = new CountDownLatch(1);
    private String own;
    private int requeued;
    private int open;
    private long lastTag;

    Consumer(Connection connection, Channel channel, int index) {
      super(channel);
      this.connection = connection;
      this.channel = channel;
      this.index = index;
      this.tag = "c" + index;
    }

    void begin(JsonObject from) throws IOException {
      if (p.number("prefetch_count", 0) > 0) channel.basicQos(p.number("prefetch_count", 0));
      String queue = from.get("queue").getAsString();
      if (p.text("pattern", "p2p").equals("pubsub")) {
        own = channel.queueDeclare("", false, true, false, null).getQueue();
        queue = own;
        channel.queueBind(own, from.get("exchange").getAsString(), from.get("key").getAsString());
      }
      if (ackMode.equals("tx")) channel.txSelect();
      channel.basicConsume(queue, ackMode.equals("no_ack"), tag, p.flag("no_local", false), p.flag("exclusive", false), null, this);
    }

    @Override
    public void handleDelivery(String consumerTag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
      long arrived = Message.now();
      client.touch();
      try {
        take(envelope, properties, body, arrived);
        double rate = p.rate("inbound_rate");
        if (rate > 0) Sender.pause((long) (1e9 / rate));
      } catch (IOException | RuntimeException error) {
        fail(error);
      }
    }

    private void take(Envelope envelope, AMQP.BasicProperties properties, byte[] body, long arrived) throws IOException {
      long delivery = envelope.getDeliveryTag();
      if (!envelope.isRedeliver() && requeued < p.number("requeue_first", 0)) {
        requeued++;
        note(index, envelope, properties, body, arrived, false);
        channel.basicNack(delivery, false, true);
        return;
      }
      if (ackMode.equals("pre_ack")) channel.basicAck(delivery, false);
      note(index, envelope, properties, body, arrived, true);
      if (ackMode.equals("auto") || ackMode.equals("tx")) channel.basicAck(delivery, false);
      open++;
      lastTag = delivery;
      if (ackMode.equals("dups_ok") && open == 10 || ackMode.equals("tx") && open == p.number("tx_batch_size", 100)) settle();
    }

    /** Acknowledge, or commit, what is open. */
    void settle() throws IOException {
      if (open == 0) return;
      open = 0;
      if (ackMode.equals("tx")) channel.txCommit();
      if (ackMode.equals("client") || ackMode.equals("dups_ok")) channel.basicAck(lastTag, true);
    }

    void finish() throws IOException, InterruptedException {
      channel.basicCancel(tag);
      ended.await(30, TimeUnit.SECONDS);
      settle();
      channel.basicQos(0); // the answer says that the broker has the acknowledgements
      if (own != null) left += channel.queueDelete(own).getMessageCount();
    }

    @Override
    public void handleCancelOk(String consumerTag) {
      ended.countDown();
    }

    @Override
    public void handleShutdownSignal(String consumerTag, ShutdownSignalException signal) {
      ended.countDown();
      if (!signal.isInitiatedByApplication()) fail(signal);
    }
  }

  /** Keep what a message was; one that is put back is not counted. */
  private synchronized void note(
      int index, Envelope envelope, AMQP.BasicProperties properties, byte[] body, long arrived, boolean counted) {
    Map<String, Object> headers = properties.getHeaders() == null ? Map.of() : properties.getHeaders();
    if (first == 0) first = arrived;
    last = arrived;
    if (counted) count++;
    Object sequence = headers.get("SEQUENCE");
    String sender = Message.text(headers.get("CLIENT_NAME"));
    if (echoes) {
      echo.add(echoed(index, envelope, properties, headers, body));
    } else if (counted && (sender == null || !(sequence instanceof Number))) {
      unexpected.add(Message.row(index, body.length, Message.sha256(body)));
    } else if (counted) {
      String correlation = properties.getCorrelationId() == null ? "" : properties.getCorrelationId();
      Key key = new Key(index, sender, correlation, (int) Message.integer(headers.get("PUBLISHER"), 0));
      add(streams.computeIfAbsent(key, none -> new Stream(check)), ((Number) sequence).intValue(), envelope, body);
      if (p.flag("stamp", false) && headers.get("SENT_NS") instanceof Number sent) {
        measure(arrived - sent.longValue() + Long.parseLong(p.text("clock_shift_ns", "0")));
      }
    }
    notifyAll();
  }

  private void add(Stream stream, int sequence, Envelope envelope, byte[] body) {
    stream.received.add(sequence);
    if (envelope.isRedeliver()) stream.redelivered.add(sequence);
    if (!check.equals("hash")) return;
    stream.digest.add(body);
    int at = java.util.Arrays.mismatch(body, Message.body(p.number("seed", 1), sequence, p.number("message_bytes", 0)));
    if (at >= 0) stream.altered.add(Message.row(sequence, at, body.length, Message.sha256(body)));
  }

  private void measure(long nanoseconds) {
    long drop = 1L << Math.max(0, 64 - Long.numberOfLeadingZeros(Math.abs(nanoseconds)) - 11);
    latency.merge(String.valueOf(nanoseconds / drop * drop), 1, Integer::sum);
  }

  @Override
  public Main.Report start(Map<String, Object> headers) {
    return report();
  }

  @Override
  public Main.Report status(Map<String, Object> headers) {
    try {
      await(Message.integer(headers.get("WAIT_COUNT"), 0), Message.integer(headers.get("WAIT_MS"), 0));
      if (Boolean.FALSE.equals(headers.get("FINAL"))) return report();
      for (Consumer one : consumers) {
        try {
          one.finish();
        } catch (IOException | RuntimeException error) {
          fail(error);
        }
      }
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
    Main.Report told = report();
    close();
    return told;
  }

  private synchronized void await(long wanted, long milliseconds) throws InterruptedException {
    long until = System.nanoTime() + milliseconds * 1_000_000;
    for (long rest = milliseconds; count < wanted && rest > 0 && !hasFailed(); rest = (until - System.nanoTime()) / 1_000_000) {
      wait(rest);
    }
  }

  @Override
  void release() {
    for (Consumer one : consumers) one.connection.abort(10_000);
  }

  @Override
  synchronized Main.Report report() {
    JsonArray told = new JsonArray();
    streams.forEach((key, stream) -> {
      JsonObject one = Message.GSON.toJsonTree(key).getAsJsonObject();
      one.add("correlation_id", one.remove("correlationId"));
      one.addProperty("received", Message.runs(stream.received));
      one.addProperty("digest", stream.digest.text());
      one.add("altered", stream.altered.deepCopy());
      one.addProperty("redelivered", Message.runs(stream.redelivered));
      told.add(one);
    });
    JsonObject out = told("receiver");
    out.add("streams", told);
    out.add("unexpected", unexpected.deepCopy());
    out.addProperty("left", left);
    out.addProperty("first_ns", first == 0 ? "" : String.valueOf(first));
    out.addProperty("last_ns", last == 0 ? "" : String.valueOf(last));
    out.add("latency", Message.GSON.toJsonTree(latency));
    if (echoes) out.add("echo", echo.deepCopy());
    return new Main.Report(count, null, out);
  }

  private static JsonObject echoed(
      int index, Envelope envelope, AMQP.BasicProperties from, Map<String, Object> headers, byte[] body) {
    Map<String, Object> properties = new TreeMap<>();
    Object[][] named = {
      {"content_type", from.getContentType()}, {"content_encoding", from.getContentEncoding()},
      {"delivery_mode", from.getDeliveryMode()}, {"priority", from.getPriority()},
      {"correlation_id", from.getCorrelationId()}, {"reply_to", from.getReplyTo()},
      {"expiration", from.getExpiration()}, {"message_id", from.getMessageId()}, {"type", from.getType()},
      {"user_id", from.getUserId()}, {"app_id", from.getAppId()},
    };
    for (Object[] one : named) if (one[1] != null) properties.put((String) one[0], one[1]);
    JsonObject out = new JsonObject();
    out.addProperty("consumer", index);
    out.addProperty("body", Base64.getEncoder().encodeToString(body));
    out.addProperty("redelivered", envelope.isRedeliver());
    out.add("properties", Message.GSON.toJsonTree(properties));
    out.add("headers", Message.tagTable(headers));
    return out;
  }
}
