// The receiver: consumers with a connection each, ack modes, and the report of what arrived.
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

type receiver struct {
	client      *client
	p           *parameters
	shift       int64
	consumers   []*consumer
	lock        sync.Mutex
	changed     *sync.Cond
	count       int
	streams     []*stream
	known       map[streamKey]*stream
	unexpected  [][]any
	echo        []any
	first, last time.Time
	latency     map[string]int
	left        int
	closed      *closing
	fault       string
	done        bool
}

type streamKey struct {
	consumer, publisher int
	sender, correlation string
}

type stream struct {
	key         streamKey
	received    []int
	redelivered []int
	altered     [][]any
	sum         digest
}

type consumer struct {
	receiver   *receiver
	index      int
	connection *amqp.Connection
	channel    *amqp.Channel
	closes     chan *amqp.Error
	queue      string
	tag        string
	ended      chan struct{}
	open, last uint64 // messages not acknowledged yet, and the tag of the last one
	requeued   int
}

func (c *client) newReceiver(p *parameters) (role, *report) {
	r := &receiver{client: c, p: p, known: map[streamKey]*stream{}, latency: map[string]int{}}
	r.changed = sync.NewCond(&r.lock)
	var err error
	if r.shift, err = strconv.ParseInt(p.ClockShift, 10, 64); err != nil {
		return nil, &report{body: map[string]any{"role": "receiver", "error": err.Error()}}
	}
	if p.Pattern == "none" || !p.ConsumerOutActive {
		return r, nil
	}
	for _, place := range p.Consumers {
		one := &consumer{receiver: r, index: place.Index, ended: make(chan struct{})}
		r.consumers = append(r.consumers, one)
		if err := one.begin(p, p.Destinations[place.Destination]); err != nil {
			r.fail(one, err)
			told := r.report()
			r.close()
			return nil, &told
		}
	}
	return r, nil
}

func (one *consumer) begin(p *parameters, from destination) (err error) {
	if one.connection, err = one.receiver.client.open(); err != nil {
		return err
	}
	if one.channel, err = one.connection.Channel(); err != nil {
		return err
	}
	one.closes = one.channel.NotifyClose(make(chan *amqp.Error, 1))
	if p.PrefetchCount > 0 {
		if err = one.channel.Qos(p.PrefetchCount, 0, false); err != nil {
			return err
		}
	}
	queue := from.Queue
	if p.Pattern == "pubsub" {
		declared, err := one.channel.QueueDeclare("", false, false, true, false, nil)
		if err != nil {
			return err
		}
		queue, one.queue = declared.Name, declared.Name
		if err = one.channel.QueueBind(queue, from.Key, from.Exchange, false, nil); err != nil {
			return err
		}
	}
	if p.AckMode == "tx" {
		if err = one.channel.Tx(); err != nil {
			return err
		}
	}
	one.tag = fmt.Sprintf("c%d", one.index)
	messages, err := one.channel.Consume(queue, one.tag, p.AckMode == "no_ack", p.Exclusive, p.NoLocal, false, nil)
	if err != nil {
		return err
	}
	go one.run(messages)
	return nil
}

func (one *consumer) run(messages <-chan amqp.Delivery) {
	defer close(one.ended)
	r := one.receiver
	for message := range messages {
		arrived := time.Now()
		r.client.touch(arrived)
		if err := one.take(message, arrived); err != nil {
			r.fail(one, err)
		}
		if r.p.InboundRate > 0 {
			time.Sleep(time.Duration(float64(time.Second) / r.p.InboundRate))
		}
	}
}

func (one *consumer) take(message amqp.Delivery, arrived time.Time) error {
	r := one.receiver
	if !message.Redelivered && one.requeued < r.p.RequeueFirst {
		one.requeued++
		r.note(one.index, message, arrived, false)
		return message.Nack(false, true)
	}
	if r.p.AckMode == "pre_ack" {
		if err := message.Ack(false); err != nil {
			return err
		}
	}
	r.note(one.index, message, arrived, true)
	switch r.p.AckMode {
	case "auto":
		return message.Ack(false)
	case "client", "dups_ok", "tx":
		one.open, one.last = one.open+1, message.DeliveryTag
		if r.p.AckMode == "tx" {
			if err := message.Ack(false); err != nil {
				return err
			}
			if one.open == uint64(r.p.TxBatchSize) {
				return one.settle()
			}
		}
		if r.p.AckMode == "dups_ok" && one.open == 10 {
			return one.settle()
		}
	}
	return nil
}

// settle acknowledges, or commits, what is open.
func (one *consumer) settle() error {
	if one.open == 0 {
		return nil
	}
	one.open = 0
	if one.receiver.p.AckMode == "tx" {
		return one.channel.TxCommit()
	}
	return one.channel.Ack(one.last, true)
}

// note keeps what a message was; `counted` is false for one that is put back.
func (r *receiver) note(index int, message amqp.Delivery, arrived time.Time, counted bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	defer r.changed.Broadcast()
	if r.first.IsZero() {
		r.first = arrived
	}
	r.last = arrived
	if counted {
		r.count++
	}
	if r.p.Echo {
		r.echo = append(r.echo, echoed(index, message))
		return
	}
	if !counted {
		return
	}
	name, named := message.Headers["CLIENT_NAME"].(string)
	number, numbered := integer(message.Headers["SEQUENCE"])
	if !named || !numbered {
		r.unexpected = append(r.unexpected, []any{index, len(message.Body), sumOf(message.Body)})
		return
	}
	key := streamKey{index, integerOr(message.Headers["PUBLISHER"], 0), name, message.CorrelationId}
	found := r.known[key]
	if found == nil {
		found = &stream{key: key, sum: newDigest(r.p.Check)}
		r.known[key] = found
		r.streams = append(r.streams, found)
	}
	found.add(r.p, int(number), message)
	if sent, stamped := integer(message.Headers["SENT_NS"]); r.p.Stamp && stamped {
		r.measure(arrived.UnixNano() - sent + r.shift)
	}
}

func (s *stream) add(p *parameters, sequence int, message amqp.Delivery) {
	s.received = append(s.received, sequence)
	if message.Redelivered {
		s.redelivered = append(s.redelivered, sequence)
	}
	if p.Check != "hash" {
		return
	}
	s.sum.add(message.Body)
	if at := firstDifference(message.Body, body(p.Seed, sequence, p.MessageBytes)); at >= 0 {
		s.altered = append(s.altered, []any{sequence, at, len(message.Body), sumOf(message.Body)})
	}
}

func (r *receiver) measure(latency int64) {
	drop := int64(1) << max(0, bits.Len64(uint64(max(latency, -latency)))-11)
	r.latency[strconv.FormatInt(latency/drop*drop, 10)]++
}

func (r *receiver) over() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.done
}

func (r *receiver) start(amqp.Table) report { return r.report() }

func (r *receiver) status(headers amqp.Table) report {
	wanted := integerOr(headers["WAIT_COUNT"], 0)
	patience := time.Duration(integerOr(headers["WAIT_MS"], 0)) * time.Millisecond
	expired := false
	timer := time.AfterFunc(patience, func() {
		r.lock.Lock()
		defer r.lock.Unlock()
		expired = true
		r.changed.Broadcast()
	})
	r.lock.Lock()
	for r.count < wanted && !expired && r.closed == nil && r.fault == "" {
		r.changed.Wait()
	}
	r.lock.Unlock()
	timer.Stop()
	final, given := headers["FINAL"].(bool)
	if !final && given {
		return r.report()
	}
	for _, one := range r.consumers {
		if err := r.finish(one); err != nil {
			r.fail(one, err)
		}
	}
	told := r.report()
	r.close()
	return told
}

// finish cancels a consumer, takes in what was on its way, settles it and drops an own queue.
func (r *receiver) finish(one *consumer) error {
	if err := one.channel.Cancel(one.tag, false); err != nil {
		return err
	}
	<-one.ended
	if err := one.settle(); err != nil {
		return err
	}
	if err := one.channel.Qos(0, 0, false); err != nil || one.queue == "" {
		return err // the answer says that the broker has the acknowledgements
	}
	left, err := one.channel.QueueDelete(one.queue, false, false, false)
	r.left += left
	return err
}

func (r *receiver) close() {
	r.lock.Lock()
	r.done = true
	r.lock.Unlock()
	for _, one := range r.consumers {
		if one.connection != nil {
			_ = one.connection.Close() // it may be closed by the broker already
		}
	}
}

func (r *receiver) fail(one *consumer, err error) {
	closed, fault := readFault(one.connection, one.closes, err)
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.closed == nil && r.fault == "" {
		r.closed, r.fault = closed, fault
	}
	r.changed.Broadcast()
}

func (r *receiver) report() report {
	r.lock.Lock()
	defer r.lock.Unlock()
	streams := make([]any, 0, len(r.streams))
	for _, one := range r.streams {
		streams = append(streams, map[string]any{
			"consumer": one.key.consumer, "sender": one.key.sender, "publisher": one.key.publisher,
			"correlation_id": one.key.correlation, "received": runs(one.received), "digest": one.sum.text(),
			"altered": append([][]any{}, one.altered...), "redelivered": runs(one.redelivered),
		})
	}
	out := map[string]any{
		"role": "receiver", "streams": streams, "unexpected": append([][]any{}, r.unexpected...),
		"left": r.left, "closed": r.closed, "error": r.fault, "first_ns": nanoseconds(r.first),
		"last_ns": nanoseconds(r.last), "latency": r.latency,
	}
	if r.p.Echo {
		out["echo"] = append([]any{}, r.echo...)
	}
	return report{count: int32(r.count), body: out}
}

func echoed(index int, message amqp.Delivery) map[string]any {
	properties := map[string]any{}
	for name, value := range map[string]string{
		"content_type": message.ContentType, "content_encoding": message.ContentEncoding,
		"correlation_id": message.CorrelationId, "reply_to": message.ReplyTo,
		"expiration": message.Expiration, "message_id": message.MessageId, "type": message.Type,
		"user_id": message.UserId, "app_id": message.AppId,
	} {
		if value != "" {
			properties[name] = value
		}
	}
	for name, value := range map[string]uint8{"delivery_mode": message.DeliveryMode, "priority": message.Priority} {
		if value != 0 {
			properties[name] = int(value)
		}
	}
	return map[string]any{
		"consumer": index, "body": base64.StdEncoding.EncodeToString(message.Body),
		"redelivered": message.Redelivered, "properties": properties, "headers": tagTable(message.Headers),
	}
}

func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
