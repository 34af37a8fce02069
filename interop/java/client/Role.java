import com.google.gson.*;
import com.rabbitmq.client.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

/** A role: what it was told, its connections, and what happened since its last report. */
final class Role {
  final String correlation;
  final ExecutorService turns = Executors.newSingleThreadExecutor();
  final AtomicInteger count = new AtomicInteger();
  private final List<Connection> connections = new ArrayList<>();
  private final List<Channel> channels = new ArrayList<>(); // of the publishers
  private final List<Receiver> receivers = new ArrayList<>();
  private final Map<String, List<Object>> told = new HashMap<>(); // by kind, what happened since the last report
  private Parameters p;
  private boolean failed;

  interface Work { void run() throws Exception; }

  /** The members of ASSIGN_ROLE. */
  private record Parameters(
      List<Line> lines, List<Line> destinations, int messageBytes, int seed, String check, int deliveryMode,
      boolean mandatory, boolean immediate, int txBatch, long everyNs, JsonObject headerFields, List<String> envelopes,
      boolean noAck, int ackEvery, boolean ackFirst, boolean ackRest, boolean noLocal, boolean exclusive, int prefetchCount,
      int requeueFirst, boolean echo) { }

  /** Where a message goes, or what one consumer consumes. */
  private record Line(int index, boolean connect, String exchange, String key, String queue) { }

  Role(String correlation) { this.correlation = correlation; }

  /** Do something and keep what went wrong. */
  void attempt(Work work) {
    try { work.run(); } catch (Exception error) { fail(error); }
  }

  /** Tell a close by the broker, which the library wraps, and any other failure. */
  private synchronized void fail(Exception error) {
    Throwable cause = error;
    while (cause != null && !(cause instanceof ShutdownSignalException)) cause = cause.getCause();
    Object reason = cause instanceof ShutdownSignalException signal ? signal.getReason() : null;
    failed = true;
    tell("error", error.toString());
    if (reason instanceof AMQP.Connection.Close close)
      tell("closed", Map.of("level", "connection", "code", close.getReplyCode(), "text", close.getReplyText()));
    if (reason instanceof AMQP.Channel.Close close)
      tell("closed", Map.of("level", "channel", "code", close.getReplyCode(), "text", close.getReplyText()));
  }

  synchronized boolean hasFailed() { return failed; }

  /** Add to the next report. */
  private synchronized void tell(String kind, Object what) {
    told.computeIfAbsent(kind, none -> new ArrayList<>()).add(what);
  }

  synchronized Map<String, List<Object>> report() {
    var all = Map.copyOf(told);
    told.clear();
    return all;
  }

  private boolean checks() { return p.check().equals("hash"); }
  private String hash(byte[] of) throws Exception { return checks() ? Message.HEX.formatHex(Message.sha256(of)) : ""; }
  private byte[] body(int sequence) throws Exception { return Message.body(p.seed(), sequence, p.messageBytes()); }

  /** Wait for the time that so many messages take, counted from a beginning. */
  private void pace(int messages, long begun) throws InterruptedException {
    long rest = begun + messages * p.everyNs() - System.nanoTime();
    if (rest > 0 && p.everyNs() > 0) Thread.sleep(rest / 1_000_000, (int) (rest % 1_000_000));
  }

  void close() {
    connections.forEach(connection -> connection.abort(10_000));
    turns.shutdown();
  }

  void open(Delivery request) throws Exception {
    p = Message.parse(request.getBody(), Parameters.class);
    boolean receives = "RECEIVER".equals("" + Message.headers(request.getProperties()).get("ROLE"));
    for (Line asked : p.lines()) {
      if (asked.connect()) connections.add(Main.BROKER.newConnection());
      Channel channel = connections.get(connections.size() - 1).createChannel();
      if (p.txBatch() > 0) channel.txSelect();
      else if (!receives) channel.confirmSelect();
      if (receives) receivers.add(new Receiver(channel, asked));
      else channels.add(channel);
      channel.addReturnListener(back -> tell("returned", Map.of(
          "code", back.getReplyCode(), "headers", Message.tagTable(Message.headers(back.getProperties())))));
    }
  }

  /** End a transaction, if there are any, after so many messages. */
  private void commit(Channel channel, long messages) throws Exception {
    if (p.txBatch() > 0 && messages % p.txBatch() == 0) channel.txCommit();
  }

  /** Publish message by message, the publishers in turn, and wait until the broker has them. */
  void start(Map<String, Object> fields) throws Exception {
    long begun = System.nanoTime();
    tell("started_ns", "" + Message.now());
    for (int done = 0; done < (int) fields.get("MESSAGE_COUNT"); done++) {
      pace(done, begun);
      for (int publisher = 0; publisher < channels.size(); publisher++) {
        publish(publisher, (int) fields.get("FIRST") + done);
        commit(channels.get(publisher), done + 1);
      }
    }
    for (Channel channel : channels) {
      if (p.txBatch() == 0) channel.waitForConfirms();
      commit(channel, 0);
      channel.basicQos(0);
    }
    tell("ended_ns", "" + Message.now());
  }

  private void publish(int publisher, int sequence) throws Exception {
    var to = p.destinations().get((publisher + sequence) % p.destinations().size());
    var made = make(publisher, sequence);
    channels.get(publisher).basicPublish(
        to.exchange(), to.key(), p.mandatory(), p.immediate(), made.properties(), made.body());
    tell("messages", Map.of("publisher", publisher, "sequence", sequence, "sha256", hash(made.body())));
    count.incrementAndGet();
  }

  private Message make(int publisher, int sequence) throws Exception {
    if (!p.envelopes().isEmpty()) return Message.project(p.envelopes().get(sequence % p.envelopes().size()));
    var headers = Message.untagTable(p.headerFields());
    headers.putAll(Map.of("PUBLISHER", publisher, "SEQUENCE", sequence, "SENT_NS", Message.now()));
    headers.put("CLIENT_NAME", Main.GIVEN.get("client_name"));
    return new Message(new AMQP.BasicProperties.Builder()
        .headers(headers).correlationId(correlation).contentType("application/octet-stream")
        .deliveryMode(p.deliveryMode()).build(), body(sequence));
  }

  /** Wait for so many messages, or so long; then end the role if this is final. */
  void status(Map<String, Object> fields) throws Exception {
    long until = System.nanoTime() + (int) fields.get("WAIT_MS") * 1_000_000L;
    while (count.get() < (int) fields.get("WAIT_COUNT") && !hasFailed() && System.nanoTime() < until) Thread.sleep(1);
    if ((boolean) fields.get("FINAL")) for (Receiver one : receivers) one.finish();
  }

  /** One consumer on a connection of its own. */
  private final class Receiver extends DefaultConsumer {
    private final Line from;
    private final String queue;
    private final CountDownLatch ended = new CountDownLatch(1);

    Receiver(Channel channel, Line from) throws Exception {
      super(channel);
      this.from = from;
      boolean own = from.queue().isEmpty();
      queue = own ? channel.queueDeclare("", false, true, false, null).getQueue() : from.queue();
      if (own) channel.queueBind(queue, from.exchange(), from.key());
      channel.basicQos(p.prefetchCount());
      channel.basicConsume(queue, p.noAck(), "lab", p.noLocal(), p.exclusive(), null, this);
    }

    @Override public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
      Main.heard = System.nanoTime();
      attempt(() -> take(new Delivery(envelope, properties, body)));
    }

    /** Look at one delivery and acknowledge it as we were told, or put it back. */
    private void take(Delivery message) throws Exception {
      long begun = System.nanoTime();
      long tag = message.getEnvelope().getDeliveryTag();
      boolean back = tag <= p.requeueFirst();
      boolean due = p.ackEvery() > 0 && tag % p.ackEvery() == 0 && !back;
      if (due && p.ackFirst()) getChannel().basicAck(tag, p.ackEvery() > 1);
      note(message, back);
      if (back) getChannel().basicNack(tag, false, true);
      if (due && !p.ackFirst()) getChannel().basicAck(tag, p.ackEvery() > 1);
      commit(getChannel(), tag);
      pace(1, begun);
    }

    private void note(Delivery message, boolean back) throws Exception {
      byte[] body = message.getBody();
      String arrived = "" + Message.now();
      var headers = Message.headers(message.getProperties());
      int sequence = headers.get("SEQUENCE") instanceof Number known ? known.intValue() : 0;
      tell("messages", Message.present(
          "consumer", from.index(), "redelivered", message.getEnvelope().isRedeliver(), "put_back", back,
          "arrived_ns", arrived, "length", body.length, "sha256", hash(body),
          "differs", checks() ? Arrays.mismatch(body, body(sequence)) : -1,
          "properties", Message.set(message.getProperties()), "headers", Message.tagTable(headers),
          "body", p.echo() ? Base64.getEncoder().encodeToString(body) : null));
      if (!back) count.incrementAndGet();
    }

    /** Cancel, take in what is on the way, acknowledge, delete what is ours. */
    void finish() throws Exception {
      getChannel().basicCancel("lab");
      ended.await();
      if (p.ackRest()) getChannel().basicAck(0, true);
      commit(getChannel(), 0);
      getChannel().basicQos(0); // the answer says that the broker has the acknowledgements
      if (from.queue().isEmpty()) tell("left", getChannel().queueDelete(queue).getMessageCount());
    }

    @Override public void handleCancelOk(String tag) { ended.countDown(); }

    @Override public void handleShutdownSignal(String tag, ShutdownSignalException signal) {
      ended.countDown();
      if (!signal.isInitiatedByApplication()) fail(signal);
    }
  }
}
