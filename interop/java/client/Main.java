import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.JsonSyntaxException;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The Java client of the lab (docs/reference/lab-protocol.md), on com.rabbitmq:amqp-client.
 *
 * <p>It does what it is told and reports what it did; it never judges. This file is the control
 * conversation; Sender and Receiver play the roles, Message makes and reads messages.
 */
public final class Main {
  static final List<String> TESTS = List.of(
      "TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize",
      "TC5_PubSubMessageSize", "Circuit", "Envelope", "FieldTable");
  private static final Set<String> OURS = Set.of(
      "-b", "-p", "-v", "username", "password", "client_name", "control_key", "control_timeout", "start_timeout");

  final String name;
  private final Map<String, String> options;
  private final JsonObject given = new JsonObject();
  private final String instance = "java-" + UUID.randomUUID();
  private final Map<String, Role> roles = new ConcurrentHashMap<>();
  private final ExecutorService work = Executors.newCachedThreadPool(Main::daemon);
  private final CountDownLatch end = new CountDownLatch(1);
  private Channel control;
  private int assigned;
  private volatile long heard; // when anything was heard last; 0 before the first ENLIST
  private volatile int exit;

  /** One role of one assignment. */
  interface Role {
    Report start(Map<String, Object> headers) throws IOException;

    Report status(Map<String, Object> headers) throws IOException;

    boolean isOver();
  }

  /** What a client did: a count, a sender's correlation id (or null), and the body. */
  record Report(int count, String correlationId, JsonObject body) {}

  private Main(Map<String, String> options) {
    this.options = options;
    this.name = options.get("client_name");
    options.forEach((key, text) -> {
      if (!OURS.contains(key)) given.add(key, parse(text));
    });
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, String> options = new TreeMap<>(Map.of(
        "-b", "127.0.0.1", "-p", "5672", "-v", "/", "username", "guest", "password", "guest",
        "client_name", "java", "control_key", "iop.control", "control_timeout", "60"));
    for (int i = 0; i < arguments.length; i++) {
      String one = arguments[i];
      int at = one.indexOf('=');
      if (Set.of("-b", "-p", "-v").contains(one) && i + 1 < arguments.length) options.put(one, arguments[++i]);
      else if (at > 0 && !one.startsWith("-")) options.put(one.substring(0, at), one.substring(at + 1));
      else stop(2, one + " is neither -b, -p, -v with a value nor name=value");
    }
    try {
      Double.parseDouble(options.get("control_timeout"));
      Integer.parseInt(options.get("-p"));
    } catch (NumberFormatException error) {
      stop(2, "the port and control_timeout are numbers");
    }
    try {
      System.exit(new Main(options).converse());
    } catch (IOException | java.util.concurrent.TimeoutException error) {
      stop(1, String.valueOf(error));
    }
  }

  private static void stop(int code, String why) {
    System.err.println("java client: " + why);
    System.exit(code);
  }

  private static Thread daemon(Runnable task) {
    Thread thread = new Thread(task);
    thread.setDaemon(true);
    return thread;
  }

  private static JsonElement parse(String text) {
    try {
      return JsonParser.parseString(text);
    } catch (JsonSyntaxException noJson) {
      return new JsonPrimitive(text); // a word that is no JSON is a text
    }
  }

  Connection open() throws IOException {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setHost(options.get("-b"));
    factory.setPort(Integer.parseInt(options.get("-p")));
    factory.setVirtualHost(options.get("-v"));
    factory.setUsername(options.get("username"));
    factory.setPassword(options.get("password"));
    factory.setConnectionTimeout(50_000);
    factory.setAutomaticRecoveryEnabled(false);
    factory.setTopologyRecoveryEnabled(false);
    factory.setThreadFactory(Main::daemon);
    try {
      return factory.newConnection();
    } catch (java.util.concurrent.TimeoutException error) {
      throw new IOException(error);
    }
  }

  private int converse() throws IOException, java.util.concurrent.TimeoutException, InterruptedException {
    Connection connection = open();
    connection.addShutdownListener(cause -> {
      if (end.getCount() == 0) return;
      System.err.println("java client: the control connection is lost");
      finish(1);
    });
    control = connection.createChannel();
    String queue = control.queueDeclare("", false, true, true, null).getQueue();
    for (String key : List.of(options.get("control_key"), privateKey())) control.queueBind(queue, "amq.topic", key);
    control.basicConsume(queue, true, new DefaultConsumer(control) {
      @Override
      public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
        long arrived = Message.now();
        touch();
        handle(properties, body, arrived);
      }
    });
    System.out.println("READY " + name);
    work.execute(this::watchSilence);
    end.await();
    connection.abort(1000);
    return exit;
  }

  private void finish(int code) {
    exit = code;
    end.countDown();
  }

  void touch() {
    if (heard != 0) heard = System.nanoTime();
  }

  private void watchSilence() {
    double limit = Double.parseDouble(options.get("control_timeout")) * 1e9;
    try {
      while (heard == 0 || System.nanoTime() - heard < limit) Thread.sleep(100);
    } catch (InterruptedException stopped) {
      return;
    }
    System.err.println("java client: nothing heard");
    finish(3);
  }

  private void handle(AMQP.BasicProperties request, byte[] body, long arrived) {
    Map<String, Object> headers = request.getHeaders() == null ? Map.of() : request.getHeaders();
    String kind = Message.text(headers.getOrDefault("CONTROL_TYPE", headers.get("CONTROL_TOPIC")));
    switch (kind == null ? "" : kind) {
      case "INVITE" -> answerInvite(request, headers);
      case "ASSIGN_ROLE" -> {
        String correlation = instance + "." + ++assigned;
        work.execute(() -> assign(request, headers, body, correlation));
      }
      case "START", "STATUS_REQUEST" -> {
        Role role = roles.get(request.getCorrelationId());
        if (role != null) work.execute(() -> play(role, kind, request, headers));
      }
      case "CLOCK_SYNCH" -> {
        Map<String, Object> reply = new HashMap<>(Map.of("CONTROL_TYPE", kind, "T2", arrived, "T1", headers.get("T1")));
        reply.put("T3", Message.now());
        reply(request, reply, null);
      }
      case "TERMINATE" -> finish(0);
      default -> { } // an unknown type is ignored
    }
  }

  private String privateKey() {
    return options.get("control_key") + "." + name;
  }

  private void answerInvite(AMQP.BasicProperties request, Map<String, Object> headers) {
    Map<String, Object> answer = new HashMap<>();
    answer.put("CONTROL_TYPE", "ENLIST");
    answer.put("CLIENT_PRIVATE_CONTROL_KEY", privateKey());
    String test = Message.text(headers.get("TEST_NAME"));
    JsonObject body = null;
    if (test == null) {
      body = new JsonObject();
      body.addProperty("protocol", 1);
      body.addProperty("language", "java");
      body.addProperty("runtime", System.getProperty("java.vm.name") + " " + System.getProperty("java.version"));
      body.addProperty("library", "com.rabbitmq:amqp-client");
      body.addProperty("library_version", "5.25.0");
      body.addProperty("platform", System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT));
      body.add("tests", Message.GSON.toJsonTree(TESTS));
      body.add("cannot", new JsonObject());
      body.addProperty("field_tags", Message.TAGS);
    } else if (TESTS.contains(test)) {
      answer.put("ROLES", "SENDER,RECEIVER");
    } else {
      reply(request, Map.of("CONTROL_TYPE", "DECLINE", "REASON", "there is no test " + test), null);
      return;
    }
    reply(request, answer, body);
    heard = System.nanoTime();
  }

  private void assign(AMQP.BasicProperties request, Map<String, Object> headers, byte[] body, String correlation) {
    JsonObject parameters = given.deepCopy();
    if (body.length > 0) {
      JsonParser.parseString(new String(body, StandardCharsets.UTF_8)).getAsJsonObject().entrySet()
          .forEach(one -> parameters.add(one.getKey(), one.getValue()));
    }
    for (JsonElement table : parameters.has("tables") ? parameters.getAsJsonArray("tables") : new com.google.gson.JsonArray()) {
      String odd = Message.unwritable(table.getAsJsonObject());
      if (odd != null) {
        reply(request, Map.of("CONTROL_TYPE", "DECLINE", "REASON", "amqp-client cannot write a header value of type " + odd), null);
        return;
      }
    }
    boolean sends = "SENDER".equals(Message.text(headers.get("ROLE")));
    Parameters p = new Parameters(parameters);
    Played role = sends
        ? new Sender(this, Message.text(headers.get("TEST_NAME")), p, correlation)
        : new Receiver(this, p);
    try {
      role.open();
    } catch (IOException | RuntimeException error) {
      role.fail(error);
      Report told = role.report();
      role.close();
      send(request, told);
      return;
    }
    roles.put(request.getCorrelationId(), role);
    Map<String, Object> answer = new HashMap<>(Map.of("CONTROL_TYPE", "ACCEPT_ROLE"));
    if (sends) answer.put("CORRELATION_ID", correlation);
    reply(request, answer, null);
  }

  private void play(Role role, String kind, AMQP.BasicProperties request, Map<String, Object> headers) {
    try {
      Report told = kind.equals("START") ? role.start(headers) : role.status(headers);
      if (role.isOver()) roles.remove(request.getCorrelationId());
      send(request, told);
    } catch (IOException error) {
      System.err.println("java client: " + error);
    }
  }

  private void send(AMQP.BasicProperties request, Report told) {
    Map<String, Object> headers = new HashMap<>();
    headers.put("CONTROL_TYPE", "REPORT");
    headers.put("MESSAGE_COUNT", told.count());
    if (told.correlationId() != null) headers.put("CORRELATION_ID", told.correlationId());
    reply(request, headers, told.body());
  }

  private synchronized void reply(AMQP.BasicProperties request, Map<String, Object> fields, JsonObject body) {
    Map<String, Object> headers = new HashMap<>(fields);
    headers.put("CLIENT_NAME", name);
    headers.put("CLIENT_INSTANCE", instance);
    byte[] text = body == null ? new byte[0] : Message.GSON.toJson(body).getBytes(StandardCharsets.UTF_8);
    AMQP.BasicProperties properties =
        new AMQP.BasicProperties.Builder().headers(headers).correlationId(request.getCorrelationId()).build();
    try {
      control.basicPublish("", request.getReplyTo(), properties, text);
    } catch (IOException error) {
      System.err.println("java client: a reply was not sent: " + error);
    }
  }

  /** The parameters of a role: what the coordinator gave over the command line over the defaults. */
  record Parameters(JsonObject given) {
    String text(String name, String otherwise) {
      return given.has(name) ? given.get(name).getAsString() : otherwise;
    }

    int number(String name, int otherwise) {
      return given.has(name) ? given.get(name).getAsInt() : otherwise;
    }

    double rate(String name) {
      return given.has(name) ? given.get(name).getAsBigDecimal().max(BigDecimal.ZERO).doubleValue() : 0;
    }

    boolean flag(String name, boolean otherwise) {
      return given.has(name) ? given.get(name).getAsBoolean() : otherwise;
    }

    com.google.gson.JsonArray list(String name) {
      return given.has(name) ? given.getAsJsonArray(name) : new com.google.gson.JsonArray();
    }
  }
}
