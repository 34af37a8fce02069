import static java.nio.charset.StandardCharsets.UTF_8;

import com.rabbitmq.client.*;
import java.io.*;
import java.util.*;

/**
 * The Java client of the lab (docs/reference/lab-protocol.md), on com.rabbitmq:amqp-client. It does what it is told
 * and reports what it did; it never judges. Here is the conversation, Role plays the roles, Message makes messages.
 */
public final class Main {
  static final ConnectionFactory BROKER = new ConnectionFactory();
  static final Map<String, String> GIVEN = new HashMap<>();
  private static final Map<String, Role> HELD = new HashMap<>();
  private static Channel control;
  static volatile long heard; // when anything was heard last; 0 before that

  public static void main(String[] words) throws Exception {
    Thread.setDefaultUncaughtExceptionHandler((thread, error) -> stop(1, error.toString()));
    for (String word : words) GIVEN.put(word.split("=", 2)[0], word.split("=", 2)[1]);
    BROKER.setHost(GIVEN.get("host")); // a URL may be read in another way: its vhost twice, its host not at all
    BROKER.setPort(Integer.parseInt(GIVEN.get("port")));
    BROKER.setVirtualHost(GIVEN.get("vhost"));
    BROKER.setUsername(GIVEN.get("username"));
    BROKER.setPassword(GIVEN.get("password"));
    BROKER.setRequestedHeartbeat(30);
    BROKER.setConnectionTimeout(50_000);
    BROKER.setAutomaticRecoveryEnabled(false);
    listen(Double.parseDouble(GIVEN.get("control_timeout")) * 1e9);
  }

  private static void stop(int code, String why) {
    System.err.println("java client: " + why);
    Runtime.getRuntime().halt(code);
  }

  private static void listen(double limit) throws Exception {
    control = BROKER.newConnection().createChannel();
    control.addShutdownListener(cause -> stop(1, "the control connection is lost"));
    String queue = control.queueDeclare("", false, true, true, null).getQueue();
    for (String key : List.of("control_key", "private_key")) control.queueBind(queue, "amq.topic", GIVEN.get(key));
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
    if (kind.equals("ASSIGN_ROLE")) HELD.put(assignment, new Role(GIVEN.get("instance") + "." + assignment));
    Role role = Boolean.TRUE.equals(fields.get("FINAL")) ? HELD.remove(assignment) : HELD.get(assignment);
    switch (kind) {
      case "INVITE" -> answerInvite(message, fields.get("TEST_NAME"));
      case "CLOCK_SYNCH" ->
          reply(message, kind, Map.of("T1", fields.get("T1"), "T2", arrived, "T3", Message.now()), "");
      case "ASSIGN_ROLE", "START", "STATUS_REQUEST" -> {
        if (role != null) role.turns.execute(() -> play(role, message, kind));
      }
      case "TERMINATE" -> Runtime.getRuntime().halt(0);
      default -> { } // an unknown type is ignored
    }
  }

  private static void answerInvite(Delivery message, Object test) {
    if (test == null || List.of(GIVEN.get("tests").split(" ")).contains(test.toString())) {
      var key = Map.<String, Object>of("CLIENT_PRIVATE_CONTROL_KEY", GIVEN.get("private_key"));
      reply(message, "ENLIST", key, GIVEN.get("capabilities"));
    } else reply(message, "DECLINE", Map.of("REASON", "there is no test " + test), "");
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
    Map<String, Object> told = Map.of("CORRELATION_ID", role.correlation, "MESSAGE_COUNT", role.count.get());
    reply(request, begun ? "ACCEPT_ROLE" : "REPORT", told, begun ? "" : Message.json(role.report()));
  }

  private static synchronized void reply(Delivery to, String kind, Map<String, Object> fields, String body) {
    var headers = new HashMap<>(fields);
    headers.putAll(Map.of("CONTROL_TYPE", kind, "CLIENT_NAME", GIVEN.get("client_name")));
    headers.put("CLIENT_INSTANCE", GIVEN.get("instance"));
    var about = new AMQP.BasicProperties.Builder().headers(headers);
    about.correlationId(to.getProperties().getCorrelationId());
    try {
      control.basicPublish("", to.getProperties().getReplyTo(), about.build(), body.getBytes(UTF_8));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
