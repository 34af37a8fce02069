// Drive the emulator with the unmodified azservicebus and print what it saw, as one object.
//
//	main CONNECTION QUEUE SESSION_QUEUE
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const patience = 60 * time.Second

type receiver interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func take(ctx context.Context, from receiver, count int) []*azservicebus.ReceivedMessage {
	var taken []*azservicebus.ReceivedMessage
	for len(taken) < count {
		taken = append(taken, must(from.ReceiveMessages(ctx, count-len(taken), nil))...)
	}
	return taken
}

func message(body string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body)}
}

func bodies(messages []*azservicebus.ReceivedMessage) []string {
	texts := []string{}
	for _, one := range messages {
		texts = append(texts, string(one.Body))
	}
	return texts
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	connection, queue, sessions := os.Args[1], os.Args[2], os.Args[3]
	client := must(azservicebus.NewClientFromConnectionString(connection, nil))
	sender := must(client.NewSender(queue, nil))
	taker := must(client.NewReceiverForQueue(queue, nil))
	seen := map[string]any{}

	check(sender.SendMessage(ctx, message("one"), nil))
	batch := must(sender.NewMessageBatch(ctx, nil))
	check(batch.AddMessage(message("two"), nil))
	check(batch.AddMessage(message("three"), nil))
	check(sender.SendMessageBatch(ctx, batch, nil))
	seen["peeked"] = bodies(must(taker.PeekMessages(ctx, 10, nil)))

	received := take(ctx, taker, 3)
	seen["received"] = bodies(received)
	one, two, three := received[0], received[1], received[2]
	check(taker.CompleteMessage(ctx, one, nil))
	check(taker.AbandonMessage(ctx, two, nil))
	again := take(ctx, taker, 1)[0]
	seen["count_rose"] = int(again.DeliveryCount) - int(two.DeliveryCount)
	check(taker.DeferMessage(ctx, again, nil))
	deferred := must(taker.ReceiveDeferredMessages(ctx, []int64{*again.SequenceNumber}, nil))[0]
	seen["deferred"] = string(deferred.Body)
	check(taker.CompleteMessage(ctx, deferred, nil))

	before := *three.LockedUntil
	check(taker.RenewMessageLock(ctx, three, nil))
	seen["renewed"] = !three.LockedUntil.Before(before)
	why, because := "why", "because"
	check(taker.DeadLetterMessage(ctx, three, &azservicebus.DeadLetterOptions{Reason: &why, ErrorDescription: &because}))
	graveyard := must(client.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}))
	dead := take(ctx, graveyard, 1)[0]
	seen["dead"] = []string{string(dead.Body), *dead.DeadLetterReason, *dead.DeadLetterErrorDescription}
	check(graveyard.CompleteMessage(ctx, dead, nil))

	hour := []*azservicebus.Message{message("never")}
	numbers := must(sender.ScheduleMessages(ctx, hour, time.Now().Add(time.Hour), nil))
	check(sender.CancelScheduledMessages(ctx, numbers, nil))
	must(sender.ScheduleMessages(ctx, []*azservicebus.Message{message("soon")}, time.Now().Add(500*time.Millisecond), nil))
	soon := take(ctx, taker, 1)[0]
	seen["scheduled"] = string(soon.Body)
	check(taker.CompleteMessage(ctx, soon, nil))

	check(taker.Close(ctx))
	check(sender.SendMessage(ctx, message("gone"), nil))
	eager := must(client.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}))
	seen["deleted"] = string(take(ctx, eager, 1)[0].Body)
	seen["left"] = len(must(eager.PeekMessages(ctx, 10, nil)))

	name := "s1"
	partial := must(client.NewSender(sessions, nil))
	check(partial.SendMessage(ctx, &azservicebus.Message{Body: []byte("in session"), SessionID: &name}, nil))
	session := must(client.AcceptSessionForQueue(ctx, sessions, name, nil))
	held := take(ctx, session, 1)[0]
	check(session.SetSessionState(ctx, []byte("halfway"), nil))
	state := must(session.GetSessionState(ctx, nil))
	seen["session"] = []string{*held.SessionID, string(held.Body), string(state)}
	check(session.CompleteMessage(ctx, held, nil))

	check(client.Close(ctx))
	fmt.Println(string(must(json.Marshal(seen))))
}
