import com.google.gson.JsonObject;
import com.rabbitmq.client.*;
import java.util.*;
import java.util.concurrent.CountDownLatch;

/** A role: what it was told, its connections, and what happened since its last report. */
final class Role {
  final String correlation;
  final List<Connection> connections = new ArrayList<>();
  private final Main client;
  private final List<Channel> channels = new ArrayList<>();
  private final List<Receiver> receivers = new ArrayList<>();
  private JsonObject p;
  private List<Object> messages = new ArrayList<>();
  private List<Object> returned = new ArrayList<>();
  private Map<String, Object> closed;
  private String fault = "";
  private int putBack;
  private int left;
  private long started;
  private long ended;
  volatile int count;

  /** Something that may go wrong. */
  interface Work {
    void run() throws Exception;
  }

  Role(Main client, String correlation) {
    this.client = client;
    this.correlation = correlation;
  }

  /** Do something and keep what went wrong. */
  void attempt(Work work) {
    try {
      work.run();
    } catch (Exception error) {
      fail(error);
    }
  }

  /** Tell a close by the broker, which the library wraps, from any other failure; the first one stays. */
  private synchronized void fail(Exception error) {
    Throwable cause = error;
    while (cause != null && !(cause instanceof ShutdownSignalException)) cause = cause.getCause();
    Object reason = cause instanceof ShutdownSignalException signal ? signal.getReason() : null;
    if (hasFailed()) return;
    if (reason instanceof AMQP.Connection.Close told)
      closed = Map.of("level", "connection", "code", told.getReplyCode(), "text", told.getReplyText());
    else if (reason instanceof AMQP.Channel.Close told)
      closed = Map.of("level", "channel", "code", told.getReplyCode(), "text", told.getReplyText());
    else fault = error.toString();
  }

  synchronized boolean hasFailed() {
    return closed != null || !fault.isEmpty();
  }

  private synchronized void list(Map<String, Object> message, boolean counted) {
    messages.add(message);
    if (counted) count++;
  }

  private synchronized void takeBack(Return message) {
    var headers = Message.tagTable(message.getProperties().getHeaders());
    returned.add(Map.of("code", message.getReplyCode(), "headers", headers));
  }

  synchronized Map<String, Object> report() {
    var told = new HashMap<String, Object>(Map.of(
        "messages", messages, "returned", returned, "left", left, "error", fault,
        "started_ns", String.valueOf(started), "ended_ns", String.valueOf(ended)));
    told.put("closed", closed);
    messages = new ArrayList<>();
    returned = new ArrayList<>();
    return told;
  }

  private boolean is(String name) {
    return p.get(name).getAsBoolean();
  }

  private int number(String name) {
    return p.get(name).getAsInt();
  }

  private String hash(byte[] body) throws Exception {
    return p.get("check").getAsString().equals("hash") ? Message.sha256(body) : "";
  }

  private byte[] body(int sequence) throws Exception {
    return Message.body(number("seed"), sequence, number("message_bytes"));
  }

  /** Wait for the time that so many messages take at a rate, counted from a beginning. */
  private void pace(String rate, int messages, long begun) throws InterruptedException {
    double each = p.get(rate).getAsDouble();
    long rest = each > 0 ? begun + (long) (messages / each * 1e9) - System.nanoTime() : 0;
    if (rest > 0) Thread.sleep(rest / 1_000_000, (int) (rest % 1_000_000));
  }

  private Channel connect() throws Exception {
    connections.add(client.open());
    return connections.get(connections.size() - 1).createChannel();
  }

  void open(Delivery request) throws Exception {
    p = Message.parse(request.getBody());
    if (!Message.headers(request).get("ROLE").toString().equals("SENDER")) {
      for (var asked : p.getAsJsonArray("consumers")) receivers.add(new Receiver(connect(), asked.getAsJsonObject()));
      return;
    }
    channels.add(connect());
    while (channels.size() < number("num_publishers")) channels.add(connections.get(0).createChannel());
    for (Channel channel : channels) {
      channel.addReturnListener(this::takeBack);
      if (is("transactional")) channel.txSelect();
      else channel.confirmSelect();
    }
  }

  /** Publish message by message, the publishers in turn, and wait until the broker has them. */
  void start(Map<String, Object> fields) throws Exception {
    int first = (int) fields.get("FIRST");
    int number = (int) fields.get("MESSAGE_COUNT");
    long begun = System.nanoTime();
    started = Message.now();
    for (int done = 0; done < number; done++) {
      pace("outgoing_rate", done, begun);
      for (int publisher = 0; publisher < channels.size(); publisher++) {
        publish(publisher, first + done);
        if (is("transactional") && (done + 1) % number("tx_batch_size") == 0) channels.get(publisher).txCommit();
      }
    }
    for (Channel channel : channels) {
      if (is("transactional")) channel.txCommit();
      else channel.waitForConfirms();
      channel.basicQos(0);
    }
    ended = Message.now();
  }

  private void publish(int publisher, int sequence) throws Exception {
    var places = p.getAsJsonArray("destinations");
    var to = places.get((publisher + sequence) % places.size()).getAsJsonObject();
    Message message = make(publisher, sequence);
    channels.get(publisher).basicPublish(
        to.get("exchange").getAsString(), to.get("key").getAsString(), is("mandatory"), is("immediate"),
        message.properties(), message.body());
    list(Map.of("publisher", publisher, "sequence", sequence, "sha256", hash(message.body())), true);
  }

  private Message make(int publisher, int sequence) throws Exception {
    var envelopes = p.getAsJsonArray("envelopes");
    if (!envelopes.isEmpty()) return Message.project(envelopes.get(sequence % envelopes.size()).getAsString());
    var headers = Message.untagTable(p.getAsJsonObject("header_fields"));
    headers.putAll(Map.of(
        "CLIENT_NAME", client.given.get("client_name"), "PUBLISHER", publisher, "SEQUENCE", sequence,
        "SENT_NS", Message.now()));
    return new Message(new AMQP.BasicProperties.Builder()
        .headers(headers).correlationId(correlation).contentType("application/octet-stream")
        .deliveryMode(is("persistent") ? 2 : 1).build(), body(sequence));
  }

  /** Wait for so many messages, or so long; then end the role if this is final. */
  void status(Map<String, Object> fields, boolean ends) throws Exception {
    long until = System.nanoTime() + (int) fields.get("WAIT_MS") * 1_000_000L;
    while (count < (int) fields.get("WAIT_COUNT") && !hasFailed() && System.nanoTime() < until) Thread.sleep(1);
    if (ends) for (Receiver one : receivers) one.finish();
  }

  private synchronized boolean putsBack(Envelope envelope) {
    return !envelope.isRedeliver() && ++putBack <= number("requeue_first");
  }

  /** One consumer on a connection of its own. */
  private final class Receiver extends DefaultConsumer {
    private final int index;
    private final boolean own;
    private final String queue;
    private final CountDownLatch ended = new CountDownLatch(1);
    private int open;
    private int acknowledged;
    private long last;

    Receiver(Channel channel, JsonObject asked) throws Exception {
      super(channel);
      index = asked.get("index").getAsInt();
      var from = p.getAsJsonArray("destinations").get(asked.get("destination").getAsInt()).getAsJsonObject();
      own = from.get("queue").getAsString().isEmpty();
      queue = own ? channel.queueDeclare("", false, true, false, null).getQueue() : from.get("queue").getAsString();
      if (own) channel.queueBind(queue, from.get("exchange").getAsString(), from.get("key").getAsString());
      if (number("prefetch_count") > 0) channel.basicQos(number("prefetch_count"));
      if (is("ack_tx")) channel.txSelect();
      channel.basicConsume(queue, is("no_ack"), "lab", is("no_local"), is("exclusive"), null, this);
    }

    @Override
    public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
      client.heard = System.nanoTime();
      attempt(() -> {
        take(new Delivery(envelope, properties, body));
        pace("inbound_rate", 1, client.heard);
      });
    }

    /** Look at one delivery and acknowledge it as we were told, or put it back. */
    private void take(Delivery message) throws Exception {
      boolean back = putsBack(message.getEnvelope());
      last = message.getEnvelope().getDeliveryTag();
      if (!back && !is("no_ack")) open++;
      if (is("ack_first")) acknowledge();
      note(message, back);
      if (back) getChannel().basicNack(last, false, true);
      else if (open == number("ack_every")) acknowledge();
    }

    /** Acknowledge what is open; a transaction ends after so many. */
    private void acknowledge() throws Exception {
      if (open == 0) return;
      getChannel().basicAck(last, number("ack_every") != 1);
      open = 0;
      if (is("ack_tx") && ++acknowledged % number("tx_batch_size") == 0) getChannel().txCommit();
    }

    /** List one delivery. */
    private void note(Delivery message, boolean back) throws Exception {
      byte[] body = message.getBody();
      var headers = Message.headers(message);
      boolean redelivered = message.getEnvelope().isRedeliver();
      String sha256 = hash(body);
      var told = new HashMap<String, Object>(Map.of(
          "consumer", index, "redelivered", redelivered, "put_back", back, "length", body.length,
          "arrived_ns", String.valueOf(Message.now()), "sha256", sha256, "differs", -1,
          "properties", Message.set(message.getProperties()), "headers", Message.tagTable(headers)));
      int sequence = headers.get("SEQUENCE") instanceof Number known ? known.intValue() : 0;
      if (!sha256.isEmpty()) told.put("differs", Arrays.mismatch(body, body(sequence)));
      if (is("echo")) told.put("body", Base64.getEncoder().encodeToString(body));
      list(told, !back);
    }

    /** Cancel, take in what is on the way, acknowledge, delete what is ours. */
    void finish() throws Exception {
      getChannel().basicCancel("lab");
      ended.await();
      acknowledge();
      if (is("ack_tx")) getChannel().txCommit();
      getChannel().basicQos(0); // the answer says that the broker has the acknowledgements
      if (own) left += getChannel().queueDelete(queue).getMessageCount();
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
}
