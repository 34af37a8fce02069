// The roles: a sender publishes when it is told to, a receiver consumes from the moment it accepts.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// parameters are what ASSIGN_ROLE tells; every one is there.
type parameters struct {
	Destinations                                                     []struct{ Exchange, Key, Queue string }
	Consumers                                                        []struct{ Index, Destination int }
	Persistent, Mandatory, Immediate, Transactional, Exclusive, Echo bool
	Seed                                                             int
	Check                                                            string
	Envelopes                                                        [][]byte
	HeaderFields                                                     map[string]any `json:"header_fields"`
	NumPublishers                                                    int            `json:"num_publishers"`
	MessageBytes                                                     int            `json:"message_bytes"`
	TxBatchSize                                                      int            `json:"tx_batch_size"`
	OutgoingRate                                                     float64        `json:"outgoing_rate"`
	InboundRate                                                      float64        `json:"inbound_rate"`
	PrefetchCount                                                    int            `json:"prefetch_count"`
	NoLocal                                                          bool           `json:"no_local"`
	NoAck                                                            bool           `json:"no_ack"`
	AckEvery                                                         int            `json:"ack_every"`
	AckFirst                                                         bool           `json:"ack_first"`
	AckTx                                                            bool           `json:"ack_tx"`
	RequeueFirst                                                     int32          `json:"requeue_first"`
}

type object = map[string]any

const reasonWait = 5 * time.Second

// A role keeps what happened since its last report; the lock is for all below it.
type role struct {
	parameters
	client             *client
	correlation        string
	connections        []*amqp.Connection
	channels           []*amqp.Channel
	returns            []chan amqp.Return
	consumers          []*consumer
	putBack            atomic.Int32
	over               chan struct{} // closed when it is known what went wrong
	changed            chan struct{} // has one when something happened since somebody looked
	lock               sync.Mutex
	messages, returned []object
	count              int32
	left               int
	started, ended     int64
	closed             object
	fault              string
}

func newRole(c *client, correlation string) *role {
	return &role{
		client: c, correlation: correlation, over: make(chan struct{}), changed: make(chan struct{}, 1),
		messages: []object{}, returned: []object{},
	}
}

// attempt does something and keeps what went wrong.
func (r *role) attempt(work func()) {
	defer func() {
		if err, failed := recover().(error); failed {
			r.fail(err)
		}
	}()
	work()
}

// fail keeps the first thing that went wrong, and tells a close by the broker from the rest. A channel
// is closed for us before we are told why, so who only finds it closed waits for the reason.
func (r *role) fail(err error) {
	if errors.Is(err, amqp.ErrClosed) {
		select {
		case <-r.over:
		case <-time.After(reasonWait):
		}
	}
	defer r.tell(nil)
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.closed != nil || r.fault != "" {
		return
	}
	defer close(r.over)
	var fault *amqp.Error
	if !errors.As(err, &fault) || !fault.Server {
		r.fault = err.Error()
		return
	}
	level := "channel"
	if slices.ContainsFunc(r.connections, (*amqp.Connection).IsClosed) {
		level = "connection"
	}
	r.closed = object{"level": level, "code": fault.Code, "text": fault.Reason}
}

// heed fails with the close that the broker sends, if it sends one.
func (r *role) heed(closes <-chan *amqp.Error) {
	if fault := <-closes; fault != nil && fault.Server {
		r.fail(fault)
	}
}

func (r *role) failed() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.closed != nil || r.fault != ""
}

// tell lists a message, if there is one, counts it unless it was put back, and wakes who waits.
func (r *role) tell(message object) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if message != nil {
		r.messages = append(r.messages, message)
	}
	if message != nil && message["put_back"] != true {
		r.count++
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *role) report() object {
	r.lock.Lock()
	defer r.lock.Unlock()
	told := object{
		"messages": r.messages, "returned": r.returned, "left": r.left, "closed": r.closed, "error": r.fault,
		"started_ns": fmt.Sprint(r.started), "ended_ns": fmt.Sprint(r.ended),
	}
	r.messages, r.returned = []object{}, []object{}
	return told
}

func (r *role) close() {
	for _, connection := range r.connections {
		_ = connection.Close() // the broker may have closed it already
	}
}

// openChannel opens a channel on the last connection.
func (r *role) openChannel() *amqp.Channel {
	channel := must(r.connections[len(r.connections)-1].Channel())
	go r.heed(channel.NotifyClose(make(chan *amqp.Error, 1)))
	return channel
}

func (r *role) openSender() {
	r.connections = append(r.connections, r.client.open())
	for range r.NumPublishers {
		channel := r.openChannel()
		returns := channel.NotifyReturn(make(chan amqp.Return))
		r.channels, r.returns = append(r.channels, channel), append(r.returns, returns)
		go func() {
			for message := range returns {
				if message.ReplyCode != 0 { // one without says only that all before it are in
					r.lock.Lock()
					r.returned = append(r.returned, object{"code": message.ReplyCode, "headers": tagTable(message.Headers)})
					r.lock.Unlock()
				}
			}
		}()
		if r.Transactional {
			check(channel.Tx())
		} else {
			check(channel.Confirm(false))
		}
	}
}

func (r *role) start(headers amqp.Table) {
	r.started = time.Now().UnixNano()
	first, count := int(headers["FIRST"].(int32)), int(headers["MESSAGE_COUNT"].(int32))
	var all sync.WaitGroup
	for publisher := range r.channels {
		all.Add(1)
		go func() {
			defer all.Done()
			r.attempt(func() { r.publish(publisher, first, count) })
		}()
	}
	all.Wait()
	r.ended = time.Now().UnixNano()
}

// publish sends one publisher's batch and waits until the broker has it.
func (r *role) publish(publisher, first, count int) {
	channel, begun := r.channels[publisher], time.Now()
	var confirms []*amqp.DeferredConfirmation
	for done := range count {
		if r.OutgoingRate > 0 {
			time.Sleep(time.Until(begun.Add(seconds(float64(done) / r.OutgoingRate))))
		}
		sequence := first + done
		message := r.message(publisher, sequence)
		to := r.Destinations[(publisher+sequence)%len(r.Destinations)]
		confirms = append(confirms, must(channel.PublishWithDeferredConfirm(
			to.Exchange, to.Key, r.Mandatory, r.Immediate, message)))
		r.tell(object{"publisher": publisher, "sequence": sequence, "sha256": r.hash(message.Body)})
		if r.Transactional && (done+1)%r.TxBatchSize == 0 {
			check(channel.TxCommit())
		}
	}
	if r.Transactional {
		check(channel.TxCommit())
	} else {
		for _, one := range confirms {
			one.Wait() // the end of the channel ends it too, and the call below tells
		}
	}
	check(channel.Qos(0, 0, false))
	r.returns[publisher] <- amqp.Return{}
}

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }

func (r *role) hash(body []byte) string {
	if r.Check != "hash" {
		return ""
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (r *role) message(publisher, sequence int) amqp.Publishing {
	if len(r.Envelopes) > 0 {
		return project(r.Envelopes[sequence%len(r.Envelopes)])
	}
	headers := untagTable(r.HeaderFields)
	headers["CLIENT_NAME"], headers["SENT_NS"] = r.client.name, time.Now().UnixNano()
	headers["PUBLISHER"], headers["SEQUENCE"] = int32(publisher), int32(sequence)
	mode := amqp.Transient
	if r.Persistent {
		mode = amqp.Persistent
	}
	return amqp.Publishing{
		Headers: headers, CorrelationId: r.correlation, DeliveryMode: mode,
		ContentType: "application/octet-stream", Body: makeBody(r.Seed, sequence, r.MessageBytes),
	}
}

// A consumer has a connection of its own.
type consumer struct {
	index              int
	channel            *amqp.Channel
	queue              string
	own                bool
	ended              chan struct{}
	last               uint64
	open, acknowledged int
}

func (r *role) openReceiver() {
	for _, asked := range r.Consumers {
		from := r.Destinations[asked.Destination]
		r.connections = append(r.connections, r.client.open())
		one := &consumer{index: asked.Index, channel: r.openChannel(), queue: from.Queue, own: from.Queue == ""}
		one.ended = make(chan struct{})
		if one.own {
			one.queue = must(one.channel.QueueDeclare("", false, false, true, false, nil)).Name
			check(one.channel.QueueBind(one.queue, from.Key, from.Exchange, false, nil))
		}
		if r.PrefetchCount > 0 {
			check(one.channel.Qos(r.PrefetchCount, 0, false))
		}
		if r.AckTx {
			check(one.channel.Tx())
		}
		messages := must(one.channel.Consume(one.queue, "lab", r.NoAck, r.Exclusive, r.NoLocal, false, nil))
		r.consumers = append(r.consumers, one)
		go r.consume(one, messages)
	}
}

func (r *role) consume(one *consumer, messages <-chan amqp.Delivery) {
	defer close(one.ended)
	for message := range messages {
		r.client.heard.Store(time.Now().UnixNano())
		r.attempt(func() { r.take(one, message) })
		if r.InboundRate > 0 {
			time.Sleep(seconds(1 / r.InboundRate))
		}
	}
	if one.channel.IsClosed() {
		r.fail(amqp.ErrClosed)
	}
}

// take looks at one delivery and acknowledges it as we were told, or puts it back.
func (r *role) take(one *consumer, message amqp.Delivery) {
	putBack := !message.Redelivered && r.putBack.Add(1) <= r.RequeueFirst
	if one.last = message.DeliveryTag; !putBack && !r.NoAck {
		one.open++
	}
	if r.AckFirst {
		r.acknowledge(one)
	}
	r.note(one.index, message, putBack)
	if putBack {
		check(message.Nack(false, true))
	} else if one.open == r.AckEvery {
		r.acknowledge(one)
	}
}

// acknowledge settles what is open; a transaction ends after so many.
func (r *role) acknowledge(one *consumer) {
	if one.open == 0 {
		return
	}
	check(one.channel.Ack(one.last, r.AckEvery != 1))
	one.open = 0
	one.acknowledged++
	if r.AckTx && one.acknowledged%r.TxBatchSize == 0 {
		check(one.channel.TxCommit())
	}
}

// note lists one delivery.
func (r *role) note(index int, message amqp.Delivery, putBack bool) {
	told := object{
		"consumer": index, "redelivered": message.Redelivered, "put_back": putBack, "length": len(message.Body),
		"arrived_ns": fmt.Sprint(time.Now().UnixNano()), "sha256": r.hash(message.Body), "differs": -1,
		"properties": propertiesOf(message), "headers": tagTable(message.Headers),
	}
	if r.Check == "hash" {
		sequence, _ := message.Headers["SEQUENCE"].(int32)
		told["differs"] = firstDifference(message.Body, makeBody(r.Seed, int(sequence), r.MessageBytes))
	}
	if r.Echo {
		told["body"] = message.Body
	}
	r.tell(told)
}

// status waits for so many messages, or so long; then it ends the role if this is final.
func (r *role) status(headers amqp.Table, final bool) {
	enough, _ := headers["WAIT_COUNT"].(int32)
	patience, _ := headers["WAIT_MS"].(int32)
	timer := time.After(time.Duration(patience) * time.Millisecond)
	for waiting := true; waiting && r.received() < enough && !r.failed(); {
		select {
		case <-r.changed:
		case <-timer:
			waiting = false
		}
	}
	for _, one := range r.consumers {
		if final {
			r.finish(one)
		}
	}
}

func (r *role) received() int32 {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.count
}

// finish cancels, takes in what is on the way, acknowledges, and deletes what is ours.
func (r *role) finish(one *consumer) {
	check(one.channel.Cancel("lab", false))
	<-one.ended
	r.acknowledge(one)
	if r.AckTx {
		check(one.channel.TxCommit())
	}
	check(one.channel.Qos(0, 0, false)) // the answer says that the broker has the acknowledgements
	if one.own {
		r.left += must(one.channel.QueueDelete(one.queue, false, false, false))
	}
}
