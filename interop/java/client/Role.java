import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.rabbitmq.client.*;
import java.util.*;
import java.util.concurrent.CountDownLatch;

/** What both roles have: parameters, connections, and what happened since the last report. */
abstract class Role {
  final Main client;
  final JsonObject p;
  final String correlation;
  final List<Connection> connections = new ArrayList<>();
  private List<Object> messages = new ArrayList<>();
  private List<Object> returned = new ArrayList<>();
  private Map<String, Object> closed;
  private String fault = "";
  int count;
  int left;
  long started;
  long ended;

  /** Something that may go wrong. */
  interface Work {
    void run() throws Exception;
  }

  Role(Main client, JsonObject p, String correlation) {
    this.client = client;
    this.p = p;
    this.correlation = correlation;
  }

  static Role of(String name, Main client, JsonObject p, String correlation) {
    return name.equals("SENDER") ? new Sender(client, p, correlation) : new Receiver(client, p, correlation);
  }

  abstract void open() throws Exception;

  void start(Main.Request request) throws Exception { }

  void status(Main.Request request) throws Exception { }

  /** Do something and keep what went wrong. */
  final void attempt(Work work) {
    try {
      work.run();
    } catch (Exception error) {
      fail(error);
    }
  }

  /** Tell a close by the broker, which the library wraps, from any other failure. */
  final synchronized void fail(Throwable error) {
    if (hasFailed()) return;
    Throwable cause = error;
    while (cause != null && !(cause instanceof ShutdownSignalException)) cause = cause.getCause();
    Object reason = cause instanceof ShutdownSignalException signal ? signal.getReason() : null;
    if (reason instanceof AMQP.Connection.Close told) close("connection", told.getReplyCode(), told.getReplyText());
    else if (reason instanceof AMQP.Channel.Close told) close("channel", told.getReplyCode(), told.getReplyText());
    else fault = error.toString();
    notifyAll();
  }

  private void close(String level, int code, String text) {
    closed = Map.of("level", level, "code", code, "text", text);
  }

  final synchronized boolean hasFailed() {
    return closed != null || !fault.isEmpty();
  }

  final synchronized void list(Map<String, Object> message, boolean counted) {
    messages.add(message);
    if (counted) count++;
    notifyAll();
  }

  final synchronized void giveBack(Map<String, Object> message) {
    returned.add(message);
  }

  final synchronized Map<String, Object> report() {
    Map<String, Object> told = new HashMap<>(Map.of(
        "messages", messages, "returned", returned, "left", left, "error", fault,
        "started_ns", String.valueOf(started), "ended_ns", String.valueOf(ended)));
    told.put("closed", closed);
    messages = new ArrayList<>();
    returned = new ArrayList<>();
    return told;
  }

  final Channel connect() throws Exception {
    connections.add(client.open());
    return connections.get(connections.size() - 1).createChannel();
  }

  final boolean is(String name) {
    return p.get(name).getAsBoolean();
  }

  final int number(String name) {
    return p.get(name).getAsInt();
  }

  final String hash(byte[] body) {
    return p.get("check").getAsString().equals("hash") ? Message.sha256(body) : "";
  }

  /** Wait for the time that so many messages take at a rate, counted from a beginning. */
  final void pace(String rate, int messages, long begun) throws InterruptedException {
    double each = p.get(rate).getAsDouble();
    long rest = each > 0 ? begun + (long) (messages / each * 1e9) - System.nanoTime() : 0;
    if (rest > 0) Thread.sleep(rest / 1_000_000, (int) (rest % 1_000_000));
  }
}

/** A sender publishes when it is told to. */
final class Sender extends Role {
  private final List<Channel> channels = new ArrayList<>();
  private final JsonArray places = p.getAsJsonArray("destinations");
  private final boolean transactional = is("transactional");

  Sender(Main client, JsonObject p, String correlation) {
    super(client, p, correlation);
  }

  @Override
  void open() throws Exception {
    channels.add(connect());
    while (channels.size() < number("num_publishers")) channels.add(connections.get(0).createChannel());
    for (Channel channel : channels) {
      channel.addReturnListener(message -> giveBack(Map.of(
          "code", message.getReplyCode(), "headers", Message.tagTable(message.getProperties().getHeaders()))));
      if (transactional) channel.txSelect();
      else channel.confirmSelect();
    }
  }

  @Override
  void start(Main.Request request) throws Exception {
    started = Message.now();
    List<Thread> publishers = new ArrayList<>();
    for (int index = 0; index < channels.size(); index++) {
      int publisher = index;
      Work work = () -> publish(publisher, request.number("FIRST"), request.number("MESSAGE_COUNT"));
      publishers.add(Main.begin(() -> attempt(work)));
    }
    for (Thread publisher : publishers) publisher.join();
    ended = Message.now();
  }

  /** Send one publisher's batch and wait until the broker has it. */
  private void publish(int publisher, int first, int count) throws Exception {
    Channel channel = channels.get(publisher);
    long begun = System.nanoTime();
    for (int done = 0; done < count; done++) {
      pace("outgoing_rate", done, begun);
      int sequence = first + done;
      JsonObject to = places.get((publisher + sequence) % places.size()).getAsJsonObject();
      Message message = make(publisher, sequence);
      channel.basicPublish(
          to.get("exchange").getAsString(), to.get("key").getAsString(), is("mandatory"), is("immediate"),
          message.properties(), message.body());
      list(Map.of("publisher", publisher, "sequence", sequence, "sha256", hash(message.body())), true);
      if (transactional && (done + 1) % number("tx_batch_size") == 0) channel.txCommit();
    }
    if (transactional) channel.txCommit();
    else channel.waitForConfirms();
    channel.basicQos(0);
  }

  private Message make(int publisher, int sequence) {
    JsonArray envelopes = p.getAsJsonArray("envelopes");
    if (!envelopes.isEmpty()) return Message.project(envelopes.get(sequence % envelopes.size()).getAsString());
    Map<String, Object> headers = Message.untagTable(p.getAsJsonObject("header_fields"));
    headers.putAll(Map.of(
        "CLIENT_NAME", client.given.get("client_name"), "PUBLISHER", publisher, "SEQUENCE", sequence,
        "SENT_NS", Message.now()));
    return new Message(new AMQP.BasicProperties.Builder()
        .headers(headers).correlationId(correlation).contentType("application/octet-stream")
        .deliveryMode(is("persistent") ? 2 : 1).build(),
        Message.body(number("seed"), sequence, number("message_bytes")));
  }
}

/** A receiver consumes from the moment it accepts the role. */
final class Receiver extends Role {
  private final List<Consumer> consumers = new ArrayList<>();
  private int putBack;

  Receiver(Main client, JsonObject p, String correlation) {
    super(client, p, correlation);
  }

  @Override
  void open() throws Exception {
    for (var asked : p.getAsJsonArray("consumers")) {
      JsonObject one = asked.getAsJsonObject();
      JsonObject from = p.getAsJsonArray("destinations").get(one.get("destination").getAsInt()).getAsJsonObject();
      consumers.add(new Consumer(connect(), one.get("index").getAsInt(), from));
    }
  }

  private synchronized boolean putsBack(Envelope envelope) {
    boolean back = !envelope.isRedeliver() && putBack < number("requeue_first");
    if (back) putBack++;
    return back;
  }

  /** One consumer on a connection of its own. */
  private final class Consumer extends DefaultConsumer {
    private final Channel channel;
    private final int index;
    private final boolean own;
    private final String queue;
    private final CountDownLatch ended = new CountDownLatch(1);
    private int open;
    private int acknowledged;
    private long last;

    Consumer(Channel channel, int index, JsonObject from) throws Exception {
      super(channel);
      this.channel = channel;
      this.index = index;
      String named = from.get("queue").getAsString();
      this.own = named.isEmpty();
      this.queue = own ? channel.queueDeclare("", false, true, false, null).getQueue() : named;
      if (own) channel.queueBind(queue, from.get("exchange").getAsString(), from.get("key").getAsString());
      if (number("prefetch_count") > 0) channel.basicQos(number("prefetch_count"));
      if (is("ack_tx")) channel.txSelect();
      channel.basicConsume(queue, is("no_ack"), "lab", is("no_local"), is("exclusive"), null, this);
    }

    @Override
    public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
      client.heard = System.nanoTime();
      attempt(() -> {
        take(envelope, properties, body);
        pace("inbound_rate", 1, client.heard);
      });
    }

    /** Look at one delivery and acknowledge it as we were told, or put it back. */
    private void take(Envelope envelope, AMQP.BasicProperties properties, byte[] body) throws Exception {
      boolean back = putsBack(envelope);
      last = envelope.getDeliveryTag();
      if (!back && !is("no_ack")) open++;
      if (is("ack_first")) acknowledge();
      note(envelope, properties, body, back);
      if (back) channel.basicNack(last, false, true);
      else if (open == number("ack_every")) acknowledge();
    }

    /** Acknowledge what is open; a transaction ends after so many. */
    private void acknowledge() throws Exception {
      if (open == 0) return;
      channel.basicAck(last, number("ack_every") != 1);
      open = 0;
      if (is("ack_tx") && ++acknowledged % number("tx_batch_size") == 0) channel.txCommit();
    }

    /** List one delivery. */
    private void note(Envelope envelope, AMQP.BasicProperties properties, byte[] body, boolean back) {
      Map<String, Object> told = new HashMap<>(Map.of(
          "consumer", index, "redelivered", envelope.isRedeliver(), "put_back", back, "length", body.length,
          "arrived_ns", String.valueOf(Message.now()), "sha256", hash(body), "differs", -1,
          "properties", Message.set(properties), "headers", Message.tagTable(properties.getHeaders())));
      if (p.get("check").getAsString().equals("hash")) {
        Object sequence = properties.getHeaders() == null ? null : properties.getHeaders().get("SEQUENCE");
        int number = sequence instanceof Number known ? known.intValue() : 0;
        told.put("differs", Arrays.mismatch(body, Message.body(number("seed"), number, number("message_bytes"))));
      }
      if (is("echo")) told.put("body", Base64.getEncoder().encodeToString(body));
      list(told, !back);
    }

    /** Cancel, take in what is on the way, acknowledge, delete what is ours. */
    void finish() throws Exception {
      channel.basicCancel("lab");
      ended.await();
      acknowledge();
      if (is("ack_tx")) channel.txCommit();
      channel.basicQos(0); // the answer says that the broker has the acknowledgements
      if (own) left += channel.queueDelete(queue).getMessageCount();
    }

    @Override
    public void handleCancelOk(String tag) {
      ended.countDown();
    }

    @Override
    public void handleShutdownSignal(String tag, ShutdownSignalException signal) {
      ended.countDown();
      if (!signal.isInitiatedByApplication()) fail(signal);
    }
  }

  @Override
  void status(Main.Request request) throws Exception {
    await(request.number("WAIT_COUNT"), System.nanoTime() / 1_000_000 + request.number("WAIT_MS"));
    if (request.isFinal()) for (Consumer one : consumers) one.finish();
  }

  private synchronized void await(int enough, long until) throws InterruptedException {
    for (long rest = 1; count < enough && rest > 0 && !hasFailed(); ) {
      rest = until - System.nanoTime() / 1_000_000;
      if (rest > 0) wait(rest);
    }
  }
}
