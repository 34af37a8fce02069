import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.rabbitmq.client.*;
import java.nio.charset.StandardCharsets;
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
      "TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize",
      "TC5_PubSubMessageSize", "Circuit", "Envelope", "FieldTable");

  /** A control message: its properties, its header fields, its body. */
  record Request(AMQP.BasicProperties properties, Map<String, Object> fields, byte[] body) {
    String text(String name) {
      return fields.containsKey(name) ? fields.get(name).toString() : null;
    }

    int number(String name) {
      return ((Number) fields.get(name)).intValue();
    }

    boolean isFinal() {
      return Boolean.TRUE.equals(fields.get("FINAL"));
    }
  }

  final Map<String, String> given = new HashMap<>();
  private final String instance = "java-" + UUID.randomUUID();
  private final Map<String, BlockingQueue<Request>> held = new ConcurrentHashMap<>();
  private Channel control;
  private int made;
  volatile long heard; // when anything was heard last; 0 before that

  public static void main(String[] words) {
    Main client = new Main();
    for (String word : words) {
      int at = word.indexOf('=');
      if (at > 0) client.given.put(word.substring(0, at), word.substring(at + 1));
    }
    try {
      client.listen();
    } catch (Exception error) {
      stop(1, error.toString());
    }
  }

  private static void stop(int code, String why) {
    System.err.println("java client: " + why);
    Runtime.getRuntime().halt(code);
  }

  static Thread begin(Runnable task) {
    Thread thread = new Thread(task);
    thread.setDaemon(true);
    thread.start();
    return thread;
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
    control.basicConsume(queue, true, (tag, message) -> {
      AMQP.BasicProperties properties = message.getProperties();
      Map<String, Object> fields = properties.getHeaders() == null ? Map.of() : properties.getHeaders();
      handle(new Request(properties, fields, message.getBody()), Message.now());
    }, tag -> { });
    System.out.println("READY " + given.get("client_name"));
    while (heard == 0 || System.nanoTime() - heard < limit) Thread.sleep(100);
    stop(3, "nothing heard");
  }

  private String key() {
    return given.get("control_key") + "." + given.get("client_name");
  }

  private void handle(Request request, long arrived) {
    heard = System.nanoTime();
    String id = request.properties().getCorrelationId();
    String kind = request.text(request.fields().containsKey("CONTROL_TYPE") ? "CONTROL_TYPE" : "CONTROL_TOPIC");
    switch (kind == null ? "" : kind) {
      case "INVITE" -> answerInvite(request, request.text("TEST_NAME"));
      case "CLOCK_SYNCH" ->
          reply(request, kind, Map.of("T1", request.fields().get("T1"), "T2", arrived, "T3", Message.now()), null);
      case "ASSIGN_ROLE" -> {
        BlockingQueue<Request> asked = new LinkedBlockingQueue<>();
        held.put(id, asked);
        String correlation = instance + "." + ++made;
        begin(() -> play(request, asked, correlation));
      }
      case "START", "STATUS_REQUEST" -> {
        BlockingQueue<Request> asked = request.isFinal() ? held.remove(id) : held.get(id);
        if (asked != null) asked.add(request);
      }
      case "TERMINATE" -> Runtime.getRuntime().halt(0);
      default -> { } // an unknown type is ignored
    }
  }

  private void answerInvite(Request request, String test) {
    if (test != null && !TESTS.contains(test)) {
      reply(request, "DECLINE", Map.of("REASON", "there is no test " + test), null);
      return;
    }
    Map<String, String> told = new HashMap<>(given);
    told.remove("password");
    String runtime = System.getProperty("java.vm.name") + " " + System.getProperty("java.version");
    reply(request, "ENLIST", Map.of("CLIENT_PRIVATE_CONTROL_KEY", key()), Map.of(
        "protocol", 2, "language", "java", "runtime", runtime, "library", "com.rabbitmq:amqp-client",
        "library_version", "5.25.0", "platform", System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT),
        "tests", TESTS, "cannot", Map.of(), "field_tags", "tbsIlfdDSATFVx", "given", told));
  }

  /** Accept a role when it is ready, do what it is asked, one after the other, and report. */
  private void play(Request first, BlockingQueue<Request> asked, String correlation) {
    JsonObject parameters = JsonParser.parseString(new String(first.body(), StandardCharsets.UTF_8)).getAsJsonObject();
    Role role = Role.of(first.text("ROLE"), this, parameters, correlation);
    role.attempt(role::open);
    boolean last = role.hasFailed();
    Request request = first;
    if (!last) reply(request, "ACCEPT_ROLE", Map.of("CORRELATION_ID", correlation), null);
    while (!last) {
      try {
        request = asked.take();
      } catch (InterruptedException stopped) {
        return;
      }
      Request now = request;
      role.attempt(now.text("CONTROL_TYPE").equals("START") ? () -> role.start(now) : () -> role.status(now));
      last = now.isFinal();
      if (!last) report(request, role);
    }
    role.connections.forEach(connection -> connection.abort(10_000));
    report(request, role);
  }

  private void report(Request request, Role role) {
    Map<String, Object> body = role.report();
    reply(request, "REPORT", Map.of("MESSAGE_COUNT", role.count, "CORRELATION_ID", role.correlation), body);
  }

  private synchronized void reply(Request request, String kind, Map<String, Object> fields, Map<String, Object> body) {
    Map<String, Object> headers = new HashMap<>(fields);
    headers.putAll(Map.of("CONTROL_TYPE", kind, "CLIENT_NAME", given.get("client_name"), "CLIENT_INSTANCE", instance));
    AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder()
        .headers(headers).correlationId(request.properties().getCorrelationId()).build();
    byte[] text = body == null ? new byte[0] : Message.json(body);
    try {
      control.basicPublish("", request.properties().getReplyTo(), properties, text);
    } catch (java.io.IOException error) {
      System.err.println("java client: a reply was not sent: " + error);
    }
  }
}
