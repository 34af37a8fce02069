// The roles: a sender publishes when it is told to, a receiver consumes from the moment it accepts.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

type object = map[string]any

const reasonWait = 5 * time.Second

// A role has what ASSIGN_ROLE told, and what happened since its last report.
type role struct {
	Destinations []struct{ Exchange, Key, Queue string }
	Consumers    []struct{ Index, Destination int }
	Envelopes    [][]byte
	HeaderFields object `json:"header_fields"`
	p            object // every parameter, also those above

	client         *client
	correlation    string
	connections    []*amqp.Connection
	channels       []*amqp.Channel
	returns        []chan amqp.Return
	consumers      []*consumer
	over           context.Context // done when something went wrong: the first such thing is its cause
	end            context.CancelCauseFunc
	left           int
	started, ended int64
	count, putBack atomic.Int32

	lock               sync.Mutex // for the lists
	messages, returned []object
}

// closed is what the broker said when it closed a channel or a connection.
type closed object

func (c closed) Error() string { return fmt.Sprint("closed: ", object(c)) }

func newRole(c *client) *role {
	r := &role{client: c, correlation: fmt.Sprintf("%s.%x", c.instance, rand.Uint64())}
	r.messages, r.returned = []object{}, []object{}
	r.over, r.end = context.WithCancelCause(context.Background())
	return r
}

func (r *role) is(name string) bool        { return r.p[name].(bool) }
func (r *role) number(name string) int     { return int(r.p[name].(float64)) }
func (r *role) failed() bool               { return r.over.Err() != nil }
func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }

// when makes a call if a parameter says so.
func (r *role) when(name string, call func() error) {
	if r.is(name) {
		check(call())
	}
}

// attempt does something and keeps what went wrong. A channel or connection is closed for us before we
// are told why, so who finds it closed waits for the reason.
func (r *role) attempt(work func()) {
	defer func() {
		err, failed := recover().(error)
		if errors.As(err, new(*amqp.Error)) || errors.As(err, new(net.Error)) {
			time.AfterFunc(reasonWait, func() { r.end(err) })
			<-r.over.Done()
		} else if failed {
			r.end(err)
		}
	}()
	work()
}

// heed ends the role when the broker closes a channel, by itself or with its connection, and when the
// connection is lost; our own close says nothing.
func (r *role) heed(closes <-chan *amqp.Error, connection *amqp.Connection) {
	if fault := <-closes; fault != nil && !fault.Server {
		r.end(fault)
	} else if fault != nil {
		level := map[bool]string{false: "channel", true: "connection"}[connection.IsClosed()]
		r.end(closed{"level": level, "code": fault.Code, "text": fault.Reason})
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
	if cause := context.Cause(r.over); errors.As(cause, &closed{}) {
		told["closed"] = cause
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

// openChannel opens a channel on the last connection.
func (r *role) openChannel() *amqp.Channel {
	connection := r.connections[len(r.connections)-1]
	channel := must(connection.Channel())
	go r.heed(channel.NotifyClose(make(chan *amqp.Error, 1)), connection)
	return channel
}

func (r *role) open(request amqp.Delivery) {
	check(json.Unmarshal(request.Body, r))
	check(json.Unmarshal(request.Body, &r.p))
	if request.Headers["ROLE"] == "SENDER" {
		r.connections = append(r.connections, r.client.open())
		for range r.number("num_publishers") {
			r.openPublisher(r.openChannel())
		}
		return
	}
	for _, asked := range r.Consumers {
		r.connections = append(r.connections, r.client.open())
		r.openConsumer(r.openChannel(), asked.Index, asked.Destination)
	}
}

func (r *role) openPublisher(channel *amqp.Channel) {
	returns := channel.NotifyReturn(make(chan amqp.Return))
	r.channels, r.returns = append(r.channels, channel), append(r.returns, returns)
	go func() {
		for message := range returns {
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
func (r *role) start(headers amqp.Table) {
	first, count := int(headers["FIRST"].(int32)), int(headers["MESSAGE_COUNT"].(int32))
	begun, confirms := time.Now(), []*amqp.DeferredConfirmation{}
	r.started = begun.UnixNano()
	for done := range count {
		if rate := r.p["outgoing_rate"].(float64); rate > 0 {
			time.Sleep(time.Until(begun.Add(seconds(float64(done) / rate))))
		}
		for publisher, channel := range r.channels {
			confirms = append(confirms, r.publish(channel, publisher, first+done))
			if (done+1)%r.number("tx_batch_size") == 0 {
				r.when("transactional", channel.TxCommit)
			}
		}
	}
	for _, one := range confirms {
		if one != nil { // there is none in a transaction
			one.Wait() // the end of the channel ends it too, and the calls below tell
		}
	}
	for publisher, channel := range r.channels {
		r.when("transactional", channel.TxCommit)
		check(channel.Qos(0, 0, false))
		r.returns[publisher] <- amqp.Return{}
	}
	r.ended = time.Now().UnixNano()
}

func (r *role) publish(channel *amqp.Channel, publisher, sequence int) *amqp.DeferredConfirmation {
	message := r.message(publisher, sequence)
	to := r.Destinations[(publisher+sequence)%len(r.Destinations)]
	confirm := must(channel.PublishWithDeferredConfirm(
		to.Exchange, to.Key, r.is("mandatory"), r.is("immediate"), message))
	r.list(&r.messages, object{"publisher": publisher, "sequence": sequence, "sha256": r.hash(message.Body)})
	r.count.Add(1)
	return confirm
}

func (r *role) hash(body []byte) string {
	if r.p["check"] != "hash" {
		return ""
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (r *role) message(publisher, sequence int) amqp.Publishing {
	if len(r.Envelopes) > 0 {
		return project(r.Envelopes[sequence%len(r.Envelopes)])
	}
	headers := eachOf(r.HeaderFields, untag)
	headers["CLIENT_NAME"], headers["SENT_NS"] = r.client.name, time.Now().UnixNano()
	headers["PUBLISHER"], headers["SEQUENCE"] = int32(publisher), int32(sequence)
	return amqp.Publishing{
		Headers: headers, CorrelationId: r.correlation, ContentType: "application/octet-stream",
		DeliveryMode: map[bool]uint8{false: amqp.Transient, true: amqp.Persistent}[r.is("persistent")],
		Body:         r.body(sequence),
	}
}

func (r *role) body(sequence int) []byte {
	return makeBody(r.number("seed"), sequence, r.number("message_bytes"))
}

// A consumer has a connection of its own.
type consumer struct {
	index, open, acknowledged int
	last                      uint64
	channel                   *amqp.Channel
	queue                     string
	own                       bool
	ended                     chan struct{}
}

func (r *role) openConsumer(channel *amqp.Channel, index, destination int) {
	from := r.Destinations[destination]
	one := &consumer{index: index, channel: channel, queue: from.Queue, own: from.Queue == ""}
	if one.own {
		one.queue = must(channel.QueueDeclare("", false, false, true, false, nil)).Name
		check(channel.QueueBind(one.queue, from.Key, from.Exchange, false, nil))
	}
	if prefetch := r.number("prefetch_count"); prefetch > 0 {
		check(channel.Qos(prefetch, 0, false))
	}
	r.when("ack_tx", channel.Tx)
	messages := must(channel.Consume(
		one.queue, "lab", r.is("no_ack"), r.is("exclusive"), r.is("no_local"), false, nil))
	one.ended = make(chan struct{})
	r.consumers = append(r.consumers, one)
	go r.consume(one, messages)
}

func (r *role) consume(one *consumer, messages <-chan amqp.Delivery) {
	defer close(one.ended)
	for message := range messages {
		r.client.heard.Store(time.Now().UnixNano())
		r.attempt(func() { r.take(one, message) })
		if rate := r.p["inbound_rate"].(float64); rate > 0 {
			time.Sleep(seconds(1 / rate))
		}
	}
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
	check(one.channel.Ack(one.last, r.number("ack_every") != 1))
	one.open, one.acknowledged = 0, one.acknowledged+1
	if one.acknowledged%r.number("tx_batch_size") == 0 {
		r.when("ack_tx", one.channel.TxCommit)
	}
}

// note lists one delivery.
func (r *role) note(index int, message amqp.Delivery, putBack bool) {
	told := object{
		"consumer": index, "redelivered": message.Redelivered, "put_back": putBack, "length": len(message.Body),
		"arrived_ns": fmt.Sprint(time.Now().UnixNano()), "sha256": r.hash(message.Body), "differs": -1,
		"properties": propertiesOf(message), "headers": eachOf(message.Headers, tag),
	}
	if r.p["check"] == "hash" {
		sequence, _ := message.Headers["SEQUENCE"].(int32)
		told["differs"] = firstDifference(message.Body, r.body(int(sequence)))
	}
	if r.is("echo") {
		told["body"] = message.Body
	}
	r.list(&r.messages, told)
}

// status waits for so many messages, or so long; then it ends the role if this is final.
func (r *role) status(headers amqp.Table, final bool) {
	enough, _ := headers["WAIT_COUNT"].(int32)
	patience, _ := headers["WAIT_MS"].(int32)
	until := time.Now().Add(time.Duration(patience) * time.Millisecond)
	for r.count.Load() < enough && !r.failed() && time.Now().Before(until) {
		time.Sleep(time.Millisecond)
	}
	for _, one := range r.consumers {
		if final {
			r.finish(one)
		}
	}
}

// finish cancels, takes in what is on the way, acknowledges, and deletes what is ours.
func (r *role) finish(one *consumer) {
	check(one.channel.Cancel("lab", false))
	<-one.ended
	r.acknowledge(one)
	r.when("ack_tx", one.channel.TxCommit)
	check(one.channel.Qos(0, 0, false)) // the answer says that the broker has the acknowledgements
	if one.own {
		r.left += must(one.channel.QueueDelete(one.queue, false, false, false))
	}
}
