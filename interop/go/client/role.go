// The roles: a sender publishes when it is told to, a receiver consumes from the moment it accepts.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A role has what ASSIGN_ROLE told, and what happened since its last report.
type role struct {
	Destinations []destination
	Consumers    []struct{ Index, Destination int }
	Envelopes    [][]byte
	HeaderFields object `json:"header_fields"`
	p            object // every parameter, also those above

	correlation        string
	connections        []*amqp.Connection
	publishers         []publisher
	consumers          []*consumer
	over               context.Context // done when something went wrong: the first such thing is its cause
	end                context.CancelCauseFunc
	left               int
	started, ended     int64
	count, putBack     atomic.Int32
	lock               sync.Mutex // for the lists
	messages, returned []object
}

type destination struct{ Exchange, Key, Queue string }

type publisher struct {
	*amqp.Channel
	returns chan amqp.Return
}

// A consumer has a connection of its own.
type consumer struct {
	*amqp.Channel
	queue                     string // none is the queue that the channel declared last
	index, open, acknowledged int
	last                      uint64
	ended                     chan struct{}
}

func newRole() *role {
	r := &role{correlation: fmt.Sprintf("%s.%x", instance, rand.Uint64()), messages: []object{}, returned: []object{}}
	r.over, r.end = context.WithCancelCause(context.Background())
	return r
}

func (r *role) is(name string) bool    { return r.p[name].(bool) }
func (r *role) number(name string) int { return int(r.p[name].(float64)) }
func (r *role) failed() bool           { return r.over.Err() != nil }
func (r *role) body(sequence int) []byte {
	return makeBody(r.number("seed"), sequence, r.number("message_bytes"))
}

// when makes a call if a parameter says so.
func (r *role) when(name string, call func() error) {
	if r.is(name) {
		check(call())
	}
}

// attempt does something and keeps what went wrong. A channel or connection is closed for us before we
// are told why, so who fails waits for the broker's reason.
func (r *role) attempt(work func()) {
	defer func() {
		if err, failed := recover().(error); failed {
			time.AfterFunc(5*time.Second, func() { r.end(err) })
			<-r.over.Done()
		}
	}()
	work()
}

// heed ends the role when a channel is closed, by itself or with its connection; our own close says nothing.
func (r *role) heed(closes <-chan *amqp.Error) {
	if fault := <-closes; fault != nil {
		r.end(fault)
	}
}

func (r *role) report() object {
	r.lock.Lock()
	defer r.lock.Unlock()
	told := object{
		"messages": r.messages, "returned": r.returned, "left": r.left, "closed": nil, "error": "",
		"started_ns": fmt.Sprint(r.started), "ended_ns": fmt.Sprint(r.ended),
	}
	r.messages, r.returned = []object{}, []object{}
	cause := context.Cause(r.over)
	if fault, closed := cause.(*amqp.Error); closed && fault.Server {
		lost := slices.ContainsFunc(r.connections, (*amqp.Connection).IsClosed)
		level := map[bool]string{false: "channel", true: "connection"}[lost]
		told["closed"] = object{"level": level, "code": fault.Code, "text": fault.Reason}
	} else if cause != nil {
		told["error"] = cause.Error()
	}
	return told
}

func (r *role) list(where *[]object, message object) {
	r.lock.Lock()
	defer r.lock.Unlock()
	*where = append(*where, message)
}

func (r *role) open(request amqp.Delivery) {
	check(json.Unmarshal(request.Body, r))
	check(json.Unmarshal(request.Body, &r.p))
	if request.Headers["ROLE"] == "SENDER" {
		r.connections = append(r.connections, connect())
		for range r.number("num_publishers") {
			r.openPublisher(r.openChannel())
		}
		return
	}
	for _, asked := range r.Consumers {
		r.connections = append(r.connections, connect())
		r.openConsumer(r.openChannel(), asked.Index, r.Destinations[asked.Destination])
	}
}

// openChannel opens a channel on the last connection.
func (r *role) openChannel() *amqp.Channel {
	channel := must(r.connections[len(r.connections)-1].Channel())
	go r.heed(channel.NotifyClose(make(chan *amqp.Error, 1)))
	return channel
}

func (r *role) openPublisher(channel *amqp.Channel) {
	one := publisher{channel, channel.NotifyReturn(make(chan amqp.Return))}
	r.publishers = append(r.publishers, one)
	go func() {
		for message := range one.returns {
			if message.ReplyCode != 0 { // one without says only that all before it are in
				r.list(&r.returned, object{"code": message.ReplyCode, "headers": eachOf(message.Headers, tag)})
			}
		}
	}()
	r.when("transactional", channel.Tx)
	if !r.is("transactional") {
		check(channel.Confirm(false))
	}
}

// start publishes message by message, the publishers in turn, and waits until the broker has them.
func (r *role) start(request amqp.Delivery) {
	first, count := int(request.Headers["FIRST"].(int32)), int(request.Headers["MESSAGE_COUNT"].(int32))
	begun, confirms := time.Now(), []*amqp.DeferredConfirmation{}
	r.started = begun.UnixNano()
	for done := range count {
		if rate := r.number("outgoing_rate"); rate > 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(done) * time.Second / time.Duration(rate))))
		}
		for index, one := range r.publishers {
			confirms = append(confirms, r.publish(one, index, first+done))
			if (done+1)%r.number("tx_batch_size") == 0 {
				r.when("transactional", one.TxCommit)
			}
		}
	}
	for _, one := range confirms {
		if one != nil { // there is none in a transaction
			one.Wait() // the end of the channel ends it too, and the calls below tell
		}
	}
	for _, one := range r.publishers {
		r.when("transactional", one.TxCommit)
		check(one.Qos(0, 0, false))
		one.returns <- amqp.Return{}
	}
	r.ended = time.Now().UnixNano()
}

func (r *role) publish(one publisher, index, sequence int) *amqp.DeferredConfirmation {
	message, to := r.message(index, sequence), r.Destinations[(index+sequence)%len(r.Destinations)]
	confirm := must(one.PublishWithDeferredConfirm(to.Exchange, to.Key, r.is("mandatory"), r.is("immediate"), message))
	r.list(&r.messages, object{"publisher": index, "sequence": sequence, "sha256": r.hash(message.Body)})
	r.count.Add(1)
	return confirm
}

func (r *role) hash(body []byte) string {
	if r.p["check"] != "hash" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(body))
}

func (r *role) message(index, sequence int) amqp.Publishing {
	if len(r.Envelopes) > 0 {
		return project(r.Envelopes[sequence%len(r.Envelopes)])
	}
	headers := eachOf(r.HeaderFields, untag)
	headers["CLIENT_NAME"], headers["SENT_NS"] = given["client_name"], time.Now().UnixNano()
	headers["PUBLISHER"], headers["SEQUENCE"] = int32(index), int32(sequence)
	return amqp.Publishing{
		Headers: headers, CorrelationId: r.correlation, ContentType: "application/octet-stream", Body: r.body(sequence),
		DeliveryMode: map[bool]uint8{false: amqp.Transient, true: amqp.Persistent}[r.is("persistent")],
	}
}

func (r *role) openConsumer(channel *amqp.Channel, index int, from destination) {
	one := &consumer{Channel: channel, queue: from.Queue, index: index, ended: make(chan struct{})}
	if one.queue == "" {
		must(one.QueueDeclare("", false, false, true, false, nil))
		check(one.QueueBind("", from.Key, from.Exchange, false, nil))
	}
	check(one.Qos(r.number("prefetch_count"), 0, false))
	r.when("ack_tx", one.Tx)
	messages := must(one.Consume(one.queue, "lab", r.is("no_ack"), r.is("exclusive"), r.is("no_local"), false, nil))
	r.consumers = append(r.consumers, one)
	go func() {
		defer close(one.ended)
		for message := range messages {
			hear()
			r.attempt(func() { r.take(one, message) })
			if rate := r.number("inbound_rate"); rate > 0 {
				time.Sleep(time.Second / time.Duration(rate))
			}
		}
	}()
}

// take looks at one delivery and acknowledges it as we were told, or puts it back.
func (r *role) take(one *consumer, message amqp.Delivery) {
	putBack := !message.Redelivered && int(r.putBack.Add(1)) <= r.number("requeue_first")
	if one.last = message.DeliveryTag; !putBack && !r.is("no_ack") {
		one.open++
	}
	if r.is("ack_first") {
		r.acknowledge(one)
	}
	r.note(one.index, message, putBack)
	if putBack {
		check(message.Nack(false, true))
		return
	}
	r.count.Add(1)
	if one.open == r.number("ack_every") {
		r.acknowledge(one)
	}
}

// acknowledge settles what is open; a transaction ends after so many.
func (r *role) acknowledge(one *consumer) {
	if one.open == 0 {
		return
	}
	check(one.Ack(one.last, r.number("ack_every") != 1))
	one.open, one.acknowledged = 0, one.acknowledged+1
	if one.acknowledged%r.number("tx_batch_size") == 0 {
		r.when("ack_tx", one.TxCommit)
	}
}

// note lists one delivery.
func (r *role) note(index int, message amqp.Delivery, putBack bool) {
	told := object{
		"consumer": index, "redelivered": message.Redelivered, "put_back": putBack, "length": len(message.Body),
		"arrived_ns": fmt.Sprint(time.Now().UnixNano()), "sha256": r.hash(message.Body), "differs": -1,
		"properties": propertiesOf(message), "headers": eachOf(message.Headers, tag),
		"body": map[bool][]byte{true: message.Body}[r.is("echo")],
	}
	if r.p["check"] == "hash" {
		sequence, _ := message.Headers["SEQUENCE"].(int32)
		told["differs"] = firstDifference(message.Body, r.body(int(sequence)))
	}
	r.list(&r.messages, told)
}

// status waits for so many messages, or so long; if this is final it then ends every consumer: cancel, take
// in what is on the way, acknowledge, delete what is ours.
func (r *role) status(request amqp.Delivery) {
	enough, _ := request.Headers["WAIT_COUNT"].(int32)
	patience, _ := request.Headers["WAIT_MS"].(int32)
	until := time.Now().Add(time.Duration(patience) * time.Millisecond)
	for r.count.Load() < enough && !r.failed() && time.Now().Before(until) {
		time.Sleep(time.Millisecond)
	}
	for at := 0; at < len(r.consumers) && isFinal(request); at++ {
		one := r.consumers[at]
		check(one.Cancel("lab", false))
		<-one.ended
		r.acknowledge(one)
		r.when("ack_tx", one.TxCommit)
		check(one.Qos(0, 0, false)) // the answer says that the broker has the acknowledgements
		if one.queue == "" {
			r.left += must(one.QueueDelete("", false, false, false))
		}
	}
}
