// Drive the emulator with the unmodified azure-messaging-servicebus and print what it saw, as JSON.
// java Main CONNECTION QUEUE SESSION_QUEUE

import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusClientBuilder.ServiceBusReceiverClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

public final class Main {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private static List<ServiceBusReceivedMessage> take(ServiceBusReceiverClient from, int count) {
    List<ServiceBusReceivedMessage> taken = new ArrayList<>();
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (taken.size() < count && System.nanoTime() < end) {
      from.receiveMessages(count - taken.size(), Duration.ofSeconds(5)).forEach(taken::add);
    }
    if (taken.size() < count) {
      throw new IllegalStateException(taken.size() + " of " + count + " messages came");
    }
    return taken;
  }

  private static ServiceBusMessage message(String body) {
    return new ServiceBusMessage(BinaryData.fromString(body));
  }

  private static String texts(List<String> all) {
    return all.stream().map(one -> '"' + one + '"').collect(Collectors.joining(",", "[", "]"));
  }

  private static String bodies(Iterable<ServiceBusReceivedMessage> messages) {
    List<String> all = new ArrayList<>();
    messages.forEach(one -> all.add(one.getBody().toString()));
    return texts(all);
  }

  public static void main(String[] words) {
    String queue = words[1];
    String sessions = words[2];
    ServiceBusClientBuilder client = new ServiceBusClientBuilder().connectionString(words[0]);
    ServiceBusReceiverClientBuilder taking =
        client.receiver().queueName(queue).disableAutoComplete();
    ServiceBusSenderClient sender = client.sender().queueName(queue).buildClient();
    ServiceBusReceiverClient taker = taking.buildClient();
    List<String> seen = new ArrayList<>();

    sender.sendMessage(message("one"));
    ServiceBusMessageBatch batch = sender.createMessageBatch();
    if (!batch.tryAddMessage(message("two")) || !batch.tryAddMessage(message("three"))) {
      throw new IllegalStateException("the batch is full");
    }
    sender.sendMessages(batch);
    seen.add("\"peeked\":" + bodies(taker.peekMessages(10)));

    List<ServiceBusReceivedMessage> received = take(taker, 3);
    seen.add("\"received\":" + bodies(received));
    ServiceBusReceivedMessage two = received.get(1);
    ServiceBusReceivedMessage three = received.get(2);
    taker.complete(received.get(0));
    taker.abandon(two);
    ServiceBusReceivedMessage again = take(taker, 1).get(0);
    seen.add("\"count_rose\":" + (again.getDeliveryCount() - two.getDeliveryCount()));
    taker.defer(again);
    ServiceBusReceivedMessage deferred = taker.receiveDeferredMessage(again.getSequenceNumber());
    seen.add("\"deferred\":\"" + deferred.getBody() + '"');
    taker.complete(deferred);

    OffsetDateTime before = three.getLockedUntil();
    seen.add("\"renewed\":" + !taker.renewMessageLock(three).isBefore(before));
    taker.deadLetter(
        three,
        new DeadLetterOptions()
            .setDeadLetterReason("why")
            .setDeadLetterErrorDescription("because"));
    ServiceBusReceiverClient graveyard =
        client.receiver().queueName(queue).subQueue(SubQueue.DEAD_LETTER_QUEUE).buildClient();
    ServiceBusReceivedMessage dead = take(graveyard, 1).get(0);
    seen.add(
        "\"dead\":"
            + texts(
                List.of(
                    dead.getBody().toString(),
                    dead.getDeadLetterReason(),
                    dead.getDeadLetterErrorDescription())));
    graveyard.complete(dead);
    graveyard.close();

    long number = sender.scheduleMessage(message("never"), OffsetDateTime.now().plusHours(1));
    sender.cancelScheduledMessage(number);
    sender.scheduleMessage(message("soon"), OffsetDateTime.now().plusNanos(500_000_000));
    ServiceBusReceivedMessage soon = take(taker, 1).get(0);
    seen.add("\"scheduled\":\"" + soon.getBody() + '"');
    taker.complete(soon);

    taker.close();
    sender.sendMessage(message("gone"));
    ServiceBusReceiverClient eager =
        client
            .receiver()
            .queueName(queue)
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE)
            .buildClient();
    seen.add("\"deleted\":\"" + take(eager, 1).get(0).getBody() + '"');
    seen.add("\"left\":" + eager.peekMessages(10).stream().count());
    eager.close();

    ServiceBusSenderClient partial = client.sender().queueName(sessions).buildClient();
    partial.sendMessage(message("in session").setSessionId("s1"));
    ServiceBusSessionReceiverClient accepting =
        client.sessionReceiver().queueName(sessions).disableAutoComplete().buildClient();
    ServiceBusReceiverClient session = accepting.acceptSession("s1");
    ServiceBusReceivedMessage held = take(session, 1).get(0);
    session.setSessionState("halfway".getBytes());
    String state = new String(session.getSessionState());
    seen.add(
        "\"session\":" + texts(List.of(held.getSessionId(), held.getBody().toString(), state)));
    session.complete(held);
    session.close();
    accepting.close();
    partial.close();
    sender.close();
    System.out.println("{" + String.join(",", seen) + "}");
    System.exit(0);
  }
}
