import com.rabbitmq.client.*;
import java.util.*;
import java.util.concurrent.*;

/**
 * The Java client of the lab (docs/reference/lab-protocol.md), on com.rabbitmq:amqp-client.
 *
 * <p>It does what it is told and reports what it did; it never judges. This file is the control
 * conversation, Role plays the roles, Message makes and reads messages.
 */
public final class Main {
  private static final List<String> TESTS = List.of(
      "TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize", "TC5_PubSubMessageSize",
      "Circuit", "Envelope", "FieldTable");

  final Map<String, String> given = new HashMap<>();
  private final String instance = "java-" + UUID.randomUUID();
  private final Map<String, BlockingQueue<Delivery>> held = new HashMap<>(); // what each role is asked
  private Channel control;
  volatile long heard; // when anything was heard last; 0 before that

  public static void main(String[] words) {
    Main client = new Main();
    for (String word : words) {
      int at = word.indexOf('=');
      if (at > 0) client.given.put(word.substring(0, at), word.substring(at + 1));
    }
    orStop(client::listen);
  }

  private static void stop(int code, String why) {
    System.err.println("java client: " + why);
    Runtime.getRuntime().halt(code);
  }

  private static void orStop(Role.Work work) {
    try {
      work.run();
    } catch (Exception error) {
      stop(1, error.toString());
    }
  }

  Connection open() throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setHost(given.get("host"));
    factory.setPort(Integer.parseInt(given.get("port")));
    factory.setVirtualHost(given.get("vhost"));
    factory.setUsername(given.get("username"));
    factory.setPassword(given.get("password"));
    factory.setConnectionTimeout(50_000);
    factory.setAutomaticRecoveryEnabled(false);
    return factory.newConnection();
  }

  private void listen() throws Exception {
    double limit = Double.parseDouble(given.get("control_timeout")) * 1e9;
    Connection connection = open();
    connection.addShutdownListener(cause -> stop(1, "the control connection is lost"));
    control = connection.createChannel();
    String queue = control.queueDeclare("", false, true, true, null).getQueue();
    for (String key : List.of(given.get("control_key"), key())) control.queueBind(queue, "amq.topic", key);
    control.basicConsume(queue, true, (tag, message) -> orStop(() -> handle(message, Message.now())), tag -> { });
    System.out.println("READY " + given.get("client_name"));
    while (heard == 0 || System.nanoTime() - heard < limit) Thread.sleep(100);
    stop(3, "nothing heard");
  }

  private String key() {
    return given.get("control_key") + "." + given.get("client_name");
  }

  private static String kind(Map<String, Object> fields) {
    return String.valueOf(fields.getOrDefault("CONTROL_TYPE", fields.get("CONTROL_TOPIC")));
  }

  private void handle(Delivery message, long arrived) throws Exception {
    heard = System.nanoTime();
    var fields = Message.headers(message);
    String id = message.getProperties().getCorrelationId();
    switch (kind(fields)) {
      case "INVITE" -> answerInvite(message, fields.get("TEST_NAME"));
      case "CLOCK_SYNCH" ->
          reply(message, "CLOCK_SYNCH", Map.of("T1", fields.get("T1"), "T2", arrived, "T3", Message.now()), null);
      case "ASSIGN_ROLE" -> {
        var asked = new LinkedBlockingQueue<>(List.of(message));
        held.put(id, asked);
        new Thread(() -> orStop(() -> play(asked))).start();
      }
      case "START", "STATUS_REQUEST" -> {
        var asked = Boolean.TRUE.equals(fields.get("FINAL")) ? held.remove(id) : held.get(id);
        if (asked != null) asked.add(message);
      }
      case "TERMINATE" -> Runtime.getRuntime().halt(0);
      default -> { } // an unknown type is ignored
    }
  }

  private void answerInvite(Delivery message, Object test) throws Exception {
    if (test != null && !TESTS.contains(test.toString())) {
      reply(message, "DECLINE", Map.of("REASON", "there is no test " + test), null);
      return;
    }
    var told = new HashMap<>(given);
    told.remove("password");
    String runtime = System.getProperty("java.vm.name") + " " + System.getProperty("java.version");
    reply(message, "ENLIST", Map.of("CLIENT_PRIVATE_CONTROL_KEY", key()), Map.of(
        "protocol", 2, "language", "java", "runtime", runtime, "library", "com.rabbitmq:amqp-client",
        "library_version", "5.25.0", "platform", System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT),
        "tests", TESTS, "cannot", Map.of(), "field_tags", "tbsIlfdDSATFVx", "given", told));
  }

  /** Do what a role is asked, one after the other: accept it when it is ready, then report. */
  private void play(BlockingQueue<Delivery> asked) throws Exception {
    Role role = new Role(this, instance + "." + UUID.randomUUID());
    for (boolean last = false; !last; ) {
      Delivery request = asked.take();
      var fields = Message.headers(request);
      boolean ends = Boolean.TRUE.equals(fields.get("FINAL"));
      boolean begins = kind(fields).equals("ASSIGN_ROLE");
      if (begins) role.attempt(() -> role.open(request));
      else if (kind(fields).equals("START")) role.attempt(() -> role.start(fields));
      else role.attempt(() -> role.status(fields, ends));
      last = begins ? role.hasFailed() : ends;
      if (last) role.connections.forEach(connection -> connection.abort(10_000));
      Map<String, Object> told = Map.of("CORRELATION_ID", role.correlation, "MESSAGE_COUNT", role.count);
      if (begins && !last) reply(request, "ACCEPT_ROLE", Map.of("CORRELATION_ID", role.correlation), null);
      else reply(request, "REPORT", told, role.report());
    }
  }

  private synchronized void reply(Delivery request, String kind, Map<String, Object> fields, Map<String, Object> body)
      throws Exception {
    var headers = new HashMap<>(fields);
    headers.putAll(Map.of("CONTROL_TYPE", kind, "CLIENT_NAME", given.get("client_name"), "CLIENT_INSTANCE", instance));
    var properties = new AMQP.BasicProperties.Builder()
        .headers(headers).correlationId(request.getProperties().getCorrelationId()).build();
    byte[] text = body == null ? new byte[0] : Message.json(body);
    control.basicPublish("", request.getProperties().getReplyTo(), properties, text);
  }
}
