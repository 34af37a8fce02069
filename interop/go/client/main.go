// The Go client of the lab (docs/reference/lab-protocol.md), on rabbitmq/amqp091-go.
//
// It does what it is told and reports what it did; it never judges. First comes the control
// conversation, then the roles, then messages and header values. A failure is a panic with the error:
// `attempt` makes it a part of a role's report, anywhere else it ends the client.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

type object = map[string]any

var (
	given   = map[string]string{}
	control *amqp.Channel
	held    sync.Map // roles by assignment
	silence = time.AfterFunc(1<<63-1, func() {
		log.Print("nothing heard")
		os.Exit(3)
	})
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(err error) { must(0, err) }

func main() {
	defer func() { log.Fatal(recover()) }()
	for _, word := range os.Args[1:] {
		name, value, _ := strings.Cut(word, "=")
		given[name] = value
	}
	control = must(must(amqp.Dial(given["url"])).Channel())
	must(control.QueueDeclare("", false, true, true, false, nil)) // below, no name is this queue
	check(control.QueueBind("", given["control_key"], "amq.topic", false, nil))
	check(control.QueueBind("", given["private_key"], "amq.topic", false, nil))
	messages := must(control.Consume("", "", true, false, false, false, nil))
	fmt.Println("READY", given["client_name"])
	for message := range messages {
		handle(message, time.Now().UnixNano())
		hear()
	}
	panic("the control connection is lost")
}

// hear starts the time of silence anew, after which the client ends (IOP-5).
func hear() { silence.Reset(must(time.ParseDuration(given["control_timeout"] + "s"))) }

func handle(message amqp.Delivery, arrived int64) {
	fields, id := message.Headers, message.CorrelationId
	switch kindOf(message) {
	case "INVITE":
		test, named := fields["TEST_NAME"].(string)
		if named && !slices.Contains(strings.Fields(given["tests"]), test) {
			reply(message, "DECLINE", amqp.Table{"REASON": "there is no test " + test}, "")
			return
		}
		reply(message, "ENLIST", amqp.Table{"CLIENT_PRIVATE_CONTROL_KEY": given["private_key"]}, given["capabilities"])
	case "CLOCK_SYNCH":
		reply(message, "CLOCK_SYNCH", amqp.Table{"T1": fields["T1"], "T2": arrived, "T3": time.Now().UnixNano()}, "")
	case "ASSIGN_ROLE":
		one := newRole(given["instance"] + "." + id)
		held.Store(id, one)
		go one.play()
		one.asked <- message
	case "START", "STATUS_REQUEST":
		if one, there := held.Load(id); there {
			one.(*role).asked <- message
		}
	case "TERMINATE":
		os.Exit(0)
	}
}

func kindOf(message amqp.Delivery) any {
	return cmp.Or(message.Headers["CONTROL_TYPE"], message.Headers["CONTROL_TOPIC"])
}

func reply(request amqp.Delivery, kind string, headers amqp.Table, body string) {
	headers["CONTROL_TYPE"], headers["CLIENT_NAME"] = kind, given["client_name"]
	headers["CLIENT_INSTANCE"] = given["instance"]
	out := amqp.Publishing{Headers: headers, CorrelationId: request.CorrelationId, Body: []byte(body)}
	check(control.Publish("", request.ReplyTo, false, false, out))
}

// A role has what ASSIGN_ROLE told, and what happened since its last report.
type role struct {
	Destinations []struct{ Exchange, Key string }
	Lines        []*line
	Envelopes    [][]byte
	HeaderFields object `json:"header_fields"`
	p            object // every parameter, also those above

	asked       chan amqp.Delivery
	correlation string
	connections []*amqp.Connection
	failed      atomic.Bool
	count       atomic.Int32
	lock        sync.Mutex // for what happened, by kind
	told        map[string][]any
}

// A line is the channel of a publisher or a consumer.
type line struct {
	Index                int
	Connect              bool
	Exchange, Key, Queue string // no queue is the one that the channel declared last
	*amqp.Channel
	returns chan amqp.Return
	ended   chan struct{}
}

func (r *role) is(name string) bool    { return r.p[name].(bool) }
func (r *role) number(name string) int { return int(r.p[name].(float64)) }

func newRole(correlation string) *role {
	return &role{correlation: correlation, asked: make(chan amqp.Delivery, 16), told: map[string][]any{}}
}

// play does what a role is asked, one after the other and in order, until it is over.
func (r *role) play() {
	for over := false; !over; {
		over = r.answer(<-r.asked)
	}
}

// answer accepts a role when it is ready, then reports; it says whether the role is over.
func (r *role) answer(request amqp.Delivery) bool {
	kind := kindOf(request)
	work := map[any]func(amqp.Delivery){"ASSIGN_ROLE": r.open, "START": r.start, "STATUS_REQUEST": r.status}
	r.attempt(func() { work[kind](request) })
	fields := amqp.Table{"CORRELATION_ID": r.correlation, "MESSAGE_COUNT": r.count.Load()}
	if kind == "ASSIGN_ROLE" && !r.failed.Load() {
		reply(request, "ACCEPT_ROLE", fields, "")
		return false
	}
	told := r.report() // before our own close, which may end in an error
	over := request.Headers["FINAL"] != false
	if over {
		held.Delete(request.CorrelationId)
		for _, connection := range r.connections {
			_ = connection.Close() // the broker may have closed it already
		}
	}
	reply(request, "REPORT", fields, told)
	return over
}

// attempt does something and tells what went wrong. A channel or connection is closed for us before we
// are told why, so who finds it closed waits for the broker's reason.
func (r *role) attempt(work func()) {
	defer func() {
		err := recover()
		switch err.(type) {
		case *amqp.Error, *net.OpError:
			for patience := 5000; patience > 0 && !r.failed.Load(); patience-- {
				time.Sleep(time.Millisecond)
			}
		}
		if err != nil {
			r.tell("error", fmt.Sprint(err))
			r.failed.Store(true)
		}
	}()
	work()
}

// heed tells how a channel was closed, by itself or with its connection; our own close says nothing.
func (r *role) heed(connection *amqp.Connection, closes <-chan *amqp.Error) {
	for fault := range closes {
		level := map[bool]string{false: "channel", true: "connection"}[connection.IsClosed()]
		if fault.Server {
			r.tell("closed", object{"level": level, "code": fault.Code, "text": fault.Reason})
		}
		r.tell("error", fault.Error())
		r.failed.Store(true)
	}
}

// tell adds to the next report.
func (r *role) tell(kind string, what any) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.told[kind] = append(r.told[kind], what)
}

func (r *role) report() string {
	r.lock.Lock()
	told := r.told
	r.told = map[string][]any{}
	r.lock.Unlock()
	return string(must(json.Marshal(told)))
}

// open opens each line and makes it ready; a receiver consumes from then on.
func (r *role) open(request amqp.Delivery) {
	check(json.Unmarshal(request.Body, r))
	check(json.Unmarshal(request.Body, &r.p))
	for _, one := range r.Lines {
		if one.Connect {
			r.connections = append(r.connections, must(amqp.Dial(given["url"])))
		}
		connection := r.connections[len(r.connections)-1]
		one.Channel = must(connection.Channel())
		go r.heed(connection, one.NotifyClose(make(chan *amqp.Error, 1)))
		one.returns = one.NotifyReturn(make(chan amqp.Return, 1<<16)) // more than fit into a report
		if r.number("tx_batch") > 0 {
			check(one.Tx())
		} else if request.Headers["ROLE"] == "SENDER" {
			check(one.Confirm(false))
		}
		if request.Headers["ROLE"] == "RECEIVER" {
			r.consume(one)
		}
	}
}

func (r *role) consume(one *line) {
	if one.Queue == "" {
		must(one.QueueDeclare("", false, false, true, false, nil))
		check(one.QueueBind("", one.Key, one.Exchange, false, nil))
	}
	check(one.Qos(r.number("prefetch_count"), 0, false))
	messages := must(one.Consume(one.Queue, "lab", r.is("no_ack"), r.is("exclusive"), r.is("no_local"), false, nil))
	one.ended = make(chan struct{})
	go func() {
		defer close(one.ended)
		for message := range messages {
			hear()
			r.attempt(func() { r.take(one, message) })
			time.Sleep(time.Duration(r.number("every_ns")))
		}
	}()
}

// start publishes message by message, the publishers in turn, and waits until the broker has them.
func (r *role) start(request amqp.Delivery) {
	first, count := int(request.Headers["FIRST"].(int32)), int(request.Headers["MESSAGE_COUNT"].(int32))
	begun, confirms := time.Now(), []*amqp.DeferredConfirmation{}
	r.tell("started_ns", fmt.Sprint(begun.UnixNano()))
	for done := range count {
		time.Sleep(time.Until(begun.Add(time.Duration(done * r.number("every_ns")))))
		for _, one := range r.Lines {
			confirms = append(confirms, r.publish(one, first+done))
			r.commit(one, done+1)
		}
	}
	for _, one := range confirms {
		if one != nil { // there is none in a transaction
			one.Wait() // the end of the channel ends it too, and the calls below tell
		}
	}
	for _, one := range r.Lines {
		r.commit(one, 0)
		check(one.Qos(0, 0, false)) // what came back was here before its answer
		for len(one.returns) > 0 {
			back := <-one.returns
			r.tell("returned", object{"code": back.ReplyCode, "headers": eachOf(back.Headers, tag)})
		}
	}
	r.tell("ended_ns", fmt.Sprint(time.Now().UnixNano()))
}

// commit ends a transaction, if there are any, after so many messages.
func (r *role) commit(one *line, messages int) {
	if batch := r.number("tx_batch"); batch > 0 && messages%batch == 0 {
		check(one.TxCommit())
	}
}

func (r *role) publish(one *line, sequence int) *amqp.DeferredConfirmation {
	headers := eachOf(r.HeaderFields, untag)
	headers["CLIENT_NAME"], headers["SENT_NS"] = given["client_name"], time.Now().UnixNano()
	headers["PUBLISHER"], headers["SEQUENCE"] = int32(one.Index), int32(sequence)
	message := amqp.Publishing{
		Headers: headers, CorrelationId: r.correlation, ContentType: "application/octet-stream", Body: r.body(sequence),
		DeliveryMode: uint8(r.number("delivery_mode")),
	}
	if len(r.Envelopes) > 0 {
		message = project(r.Envelopes[sequence%len(r.Envelopes)])
	}
	to := r.Destinations[(one.Index+sequence)%len(r.Destinations)]
	confirm := must(one.PublishWithDeferredConfirm(to.Exchange, to.Key, r.is("mandatory"), r.is("immediate"), message))
	hash, _ := r.look(message.Body, sequence)
	r.tell("messages", object{"publisher": one.Index, "sequence": sequence, "sha256": hash})
	r.count.Add(1)
	return confirm
}

// take looks at one delivery and acknowledges it as we were told, or puts it back.
func (r *role) take(one *line, message amqp.Delivery) {
	arrived, every := fmt.Sprint(time.Now().UnixNano()), uint64(r.number("ack_every"))
	putBack := message.DeliveryTag <= uint64(r.number("requeue_first"))
	due := every > 0 && message.DeliveryTag%every == 0 && !putBack
	if due && r.is("ack_first") {
		check(message.Ack(every > 1))
	}
	sequence, _ := message.Headers["SEQUENCE"].(int32)
	hash, differs := r.look(message.Body, int(sequence))
	r.tell("messages", object{
		"consumer": one.Index, "redelivered": message.Redelivered, "put_back": putBack, "length": len(message.Body),
		"arrived_ns": arrived, "sha256": hash, "differs": differs, "headers": eachOf(message.Headers, tag),
		"properties": object{
			"content_type": message.ContentType, "content_encoding": message.ContentEncoding, "type": message.Type,
			"delivery_mode": message.DeliveryMode, "priority": message.Priority, "message_id": message.MessageId,
			"correlation_id": message.CorrelationId, "reply_to": message.ReplyTo, "expiration": message.Expiration,
			"user_id": message.UserId, "app_id": message.AppId,
		}, // the library does not tell absent from empty
		"body": map[bool][]byte{true: message.Body}[r.is("echo")],
	})
	if putBack {
		check(message.Nack(false, true))
	} else {
		r.count.Add(1)
	}
	if due && !r.is("ack_first") {
		check(message.Ack(every > 1))
	}
	r.commit(one, int(message.DeliveryTag))
}

// status waits for so many messages, or so long; if this is final it then ends every consumer: cancel, take
// in what is on the way, acknowledge, delete what is ours.
func (r *role) status(request amqp.Delivery) {
	until := time.Now().Add(time.Duration(request.Headers["WAIT_MS"].(int32)) * time.Millisecond)
	for r.count.Load() < request.Headers["WAIT_COUNT"].(int32) && !r.failed.Load() && time.Now().Before(until) {
		time.Sleep(time.Millisecond)
	}
	for _, one := range r.Lines {
		if one.ended == nil || request.Headers["FINAL"] != true {
			break
		}
		check(one.Cancel("lab", false))
		<-one.ended
		if r.is("ack_rest") {
			check(one.Ack(0, true))
		}
		r.commit(one, 0)
		check(one.Qos(0, 0, false)) // the answer says that the broker has the acknowledgements
		if one.Queue == "" {
			r.tell("left", must(one.QueueDelete("", false, false, false)))
		}
	}
}

// body gives the body of a message: the first 31 bytes of a hash, over and over.
func (r *role) body(sequence int) []byte {
	pattern, size := sha256.Sum256(fmt.Appendf(nil, "%d.%d", r.number("seed"), sequence)), r.number("message_bytes")
	return bytes.Repeat(pattern[:31], size/31+1)[:size]
}

// look gives the hash of a body, and the offset where it parts from the one that was due, or -1.
func (r *role) look(body []byte, sequence int) (string, int) {
	if r.p["check"] != "hash" {
		return "", -1
	}
	hash, due := fmt.Sprintf("%x", sha256.Sum256(body)), r.body(sequence)
	if bytes.Equal(body, due) {
		return hash, -1
	}
	return hash, sort.Search(len(body), func(at int) bool { return !bytes.HasPrefix(due, body[:at+1]) })
}

// project carries an envelope as the RabbitMQ binding says: what is absent or null stays absent.
func project(raw []byte) amqp.Publishing {
	var read struct {
		Job, Attempts any
		Urn           string
		TraceID       string `json:"trace_id"`
		Meta          object
	}
	check(json.Unmarshal(raw, &read))
	name, _ := read.Job.(string)
	if strings.Trim(name, " \t\n\v\f\r") == "" {
		name = read.Urn
	}
	id, _ := read.Meta["id"].(string)
	headers := amqp.Table{"x-schema-version": read.Meta["schema_version"], "x-attempts": read.Attempts}
	for name, count := range headers {
		if count, there := count.(float64); there {
			headers[name] = int32(count)
		}
	}
	headers["x-source-lang"] = read.Meta["lang"]
	maps.DeleteFunc(headers, func(_ string, value any) bool { return value == nil })
	return amqp.Publishing{
		Headers: headers, Body: raw, Type: name, MessageId: id, CorrelationId: read.TraceID, AppId: "babelqueue",
		ContentType: "application/json", ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent,
	}
}

// tag tells a header value by the type that Go has for it, which manifest.json translates.
func tag(value any) any {
	told := value
	switch v := value.(type) {
	case float32, float64:
		told = fmt.Sprint(v) // JSON has no NaN
	case []any:
		told = each(v, tag)
	case amqp.Table:
		told = eachOf(v, tag)
	}
	return object{fmt.Sprintf("%T", value): told}
}

// scalars has a value of each type whose text fmt reads, by its tag.
var scalars = map[any]any{
	"t": false, "b": int8(0), "B": uint8(0), "s": int16(0), "u": uint16(0), "I": int32(0), "i": uint32(0),
	"l": int64(0), "f": float32(0), "d": float64(0),
}

// untag gives the library's value for a tagged one.
func untag(tagged any) any {
	parts := tagged.([]any)
	switch parts[0] {
	case "V":
		return nil
	case "S":
		return parts[1]
	case "x":
		return must(hex.DecodeString(parts[1].(string)))
	case "D":
		scale, value := untag([]any{"B", parts[1]}), untag([]any{"I", parts[2]})
		return amqp.Decimal{Scale: scale.(uint8), Value: value.(int32)}
	case "T":
		return time.Unix(untag([]any{"l", parts[1]}).(int64), 0)
	case "A":
		return each(parts[1].([]any), untag)
	case "F":
		return amqp.Table(eachOf(parts[1].(object), untag))
	}
	scalar := reflect.New(reflect.TypeOf(scalars[parts[0]]))
	must(fmt.Sscan(parts[1].(string), scalar.Interface()))
	return scalar.Elem().Interface()
}

func each(items []any, change func(any) any) []any {
	out := make([]any, len(items))
	for at, item := range items {
		out[at] = change(item)
	}
	return out
}

func eachOf(table object, change func(any) any) object {
	out := object{}
	for name, value := range table {
		out[name] = change(value)
	}
	return out
}
