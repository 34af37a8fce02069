import com.rabbitmq.client.*;
import java.io.*;
import java.util.*;

/**
 * The Java client of the lab (docs/reference/lab-protocol.md), on com.rabbitmq:amqp-client.
 *
 * <p>It does what it is told and reports what it did; it never judges. This file is the control
 * conversation, Role plays the roles, Message makes and reads messages.
 */
public final class Main {
  static final ConnectionFactory BROKER = new ConnectionFactory();
  static final Map<String, String> GIVEN = new HashMap<>();
  private static final List<String> TESTS = List.of(
      "TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize", "TC5_PubSubMessageSize",
      "Circuit", "Envelope", "FieldTable");
  private static final String INSTANCE = "java-" + UUID.randomUUID();
  private static final Map<String, Role> HELD = new HashMap<>();
  private static Channel control;
  static volatile long heard; // when anything was heard last; 0 before that

  public static void main(String[] words) throws Exception {
    Thread.setDefaultUncaughtExceptionHandler((thread, error) -> stop(1, error.toString()));
    for (String word : words) GIVEN.put(word.split("=", 2)[0], word.split("=", 2)[1]);
    BROKER.load(GIVEN, ""); // the library has our names for host, port, username and password
    BROKER.setVirtualHost(GIVEN.get("vhost"));
    BROKER.setConnectionTimeout(50_000);
    BROKER.setAutomaticRecoveryEnabled(false);
    GIVEN.remove("password");
    listen(Double.parseDouble(GIVEN.get("control_timeout")) * 1e9);
  }

  private static void stop(int code, String why) {
    System.err.println("java client: " + why);
    Runtime.getRuntime().halt(code);
  }

  private static String key() { return GIVEN.get("control_key") + "." + GIVEN.get("client_name"); }

  private static void listen(double limit) throws Exception {
    control = BROKER.newConnection().createChannel();
    control.addShutdownListener(cause -> stop(1, "the control connection is lost"));
    String queue = control.queueDeclare("", false, true, true, null).getQueue();
    for (String key : List.of(GIVEN.get("control_key"), key())) control.queueBind(queue, "amq.topic", key);
    control.basicConsume(queue, true, (tag, message) -> handle(message, Message.now()), tag -> { });
    System.out.println("READY " + GIVEN.get("client_name"));
    while (heard == 0 || System.nanoTime() - heard < limit) Thread.sleep(100);
    stop(3, "nothing heard");
  }

  private static void handle(Delivery message, long arrived) {
    heard = System.nanoTime();
    var fields = Message.headers(message.getProperties());
    String kind = String.valueOf(fields.getOrDefault("CONTROL_TYPE", fields.get("CONTROL_TOPIC")));
    String assignment = message.getProperties().getCorrelationId();
    if (kind.equals("ASSIGN_ROLE")) HELD.put(assignment, new Role());
    Role role = Boolean.TRUE.equals(fields.get("FINAL")) ? HELD.remove(assignment) : HELD.get(assignment);
    switch (kind) {
      case "INVITE" -> answerInvite(message, String.valueOf(fields.getOrDefault("TEST_NAME", TESTS.get(0))));
      case "CLOCK_SYNCH" ->
          reply(message, kind, Map.of("T1", fields.get("T1"), "T2", arrived, "T3", Message.now()), Map.of());
      case "ASSIGN_ROLE", "START", "STATUS_REQUEST" -> {
        if (role != null) role.turns.execute(() -> play(role, message, kind));
      }
      case "TERMINATE" -> Runtime.getRuntime().halt(0);
      default -> { } // an unknown type is ignored
    }
  }

  private static void answerInvite(Delivery message, String test) {
    if (!TESTS.contains(test)) {
      reply(message, "DECLINE", Map.of("REASON", "there is no test " + test), Map.of());
      return;
    }
    String runtime = System.getProperty("java.vm.name") + " " + System.getProperty("java.version");
    reply(message, "ENLIST", Map.of("CLIENT_PRIVATE_CONTROL_KEY", key()), Map.of(
        "protocol", 2, "language", "java", "runtime", runtime, "library", "com.rabbitmq:amqp-client",
        "library_version", "5.25.0", "platform", System.getProperty("os.name").toLowerCase(Locale.ROOT),
        "tests", TESTS, "cannot", Map.of(), "field_tags", "tbsIlfdDSATFVx", "given", GIVEN));
  }

  /** Accept a role when it is ready; report what it did, and that it could not begin. */
  private static void play(Role role, Delivery request, String kind) {
    var fields = Message.headers(request.getProperties());
    switch (kind) {
      case "ASSIGN_ROLE" -> role.attempt(() -> role.open(request));
      case "START" -> role.attempt(() -> role.start(fields));
      default -> role.attempt(() -> role.status(fields));
    }
    boolean begun = kind.equals("ASSIGN_ROLE") && !role.hasFailed();
    if (!begun && (boolean) fields.getOrDefault("FINAL", true)) role.close();
    Map<String, Object> told = Map.of("CORRELATION_ID", role.correlation, "MESSAGE_COUNT", role.count);
    reply(request, begun ? "ACCEPT_ROLE" : "REPORT", told, begun ? Map.of() : role.report());
  }

  private static synchronized void reply(Delivery to, String kind, Map<String, Object> fields, Object body) {
    var headers = new HashMap<>(fields);
    headers.putAll(Map.of("CONTROL_TYPE", kind, "CLIENT_NAME", GIVEN.get("client_name"), "CLIENT_INSTANCE", INSTANCE));
    var about = new AMQP.BasicProperties.Builder().headers(headers);
    about.correlationId(to.getProperties().getCorrelationId());
    try {
      control.basicPublish("", to.getProperties().getReplyTo(), about.build(), Message.json(body));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
