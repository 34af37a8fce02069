import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;

/** What both roles keep: how the broker closed, or what else went wrong. */
abstract class Played implements Main.Role {
  private JsonObject closed;
  private String fault = "";
  private boolean over;

  abstract void open() throws IOException;

  abstract Main.Report report();

  abstract void release();

  final synchronized boolean hasFailed() {
    return closed != null || !fault.isEmpty();
  }

  @Override
  public final synchronized boolean isOver() {
    return over;
  }

  final void close() {
    synchronized (this) {
      over = true;
    }
    release();
  }

  /** Tell a close by the broker, which the library wraps, from any other failure. */
  synchronized void fail(Throwable error) {
    if (hasFailed()) return;
    Throwable cause = error;
    while (cause != null && !(cause instanceof ShutdownSignalException)) cause = cause.getCause();
    if (cause instanceof ShutdownSignalException signal && !signal.isInitiatedByApplication()) {
      if (signal.getReason() instanceof AMQP.Connection.Close close) closed = closing("connection", close.getReplyCode(), close.getReplyText());
      if (signal.getReason() instanceof AMQP.Channel.Close close) closed = closing("channel", close.getReplyCode(), close.getReplyText());
    }
    if (closed == null) fault = String.valueOf(error);
    notifyAll();
  }

  private static JsonObject closing(String level, int code, String text) {
    JsonObject out = new JsonObject();
    out.addProperty("level", level);
    out.addProperty("code", code);
    out.addProperty("text", text);
    return out;
  }

  final JsonObject told(String role) {
    JsonObject out = new JsonObject();
    out.addProperty("role", role);
    out.add("closed", closed == null ? JsonNull.INSTANCE : closed);
    out.addProperty("error", fault);
    return out;
  }
}
