// The Go client of the lab (docs/reference/lab-protocol.md), on rabbitmq/amqp091-go.
//
// It does what it is told and reports what it did; it never judges. First comes the control
// conversation, then the roles, then messages and header values. A failure is a panic with the error:
// `attempt` makes it a part of a role's report, anywhere else it ends the client.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"math"
	"net"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

type object = map[string]any

var (
	given   = map[string]string{}
	control *amqp.Channel
	held    = map[string]chan amqp.Delivery{} // what each role is asked, by assignment
	silence = time.AfterFunc(math.MaxInt64, func() {
		log.Print("nothing heard")
		os.Exit(3)
	})
)

const many = 1 << 16 // more messages of one publisher than fit into a report

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

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

func kindOf(message amqp.Delivery) any {
	return cmp.Or(message.Headers["CONTROL_TYPE"], message.Headers["CONTROL_TOPIC"])
}

func handle(message amqp.Delivery, arrived int64) {
	switch kind, id := kindOf(message), message.CorrelationId; kind {
	case "INVITE":
		test, named := message.Headers["TEST_NAME"].(string)
		if named && !slices.Contains(strings.Fields(given["tests"]), test) {
			reply(message, "DECLINE", amqp.Table{"REASON": "there is no test " + test}, nil)
			return
		}
		fields := amqp.Table{"CLIENT_PRIVATE_CONTROL_KEY": given["private_key"]}
		reply(message, "ENLIST", fields, []byte(given["capabilities"]))
	case "CLOCK_SYNCH":
		stamps := amqp.Table{"T1": message.Headers["T1"], "T2": arrived, "T3": time.Now().UnixNano()}
		reply(message, "CLOCK_SYNCH", stamps, nil)
	case "ASSIGN_ROLE", "START", "STATUS_REQUEST":
		if kind == "ASSIGN_ROLE" {
			held[id] = make(chan amqp.Delivery, 16)
			go play(newRole(given["instance"]+"."+id), held[id])
		}
		if held[id] != nil {
			held[id] <- message
		}
		if message.Headers["FINAL"] == true {
			delete(held, id)
		}
	case "TERMINATE":
		os.Exit(0)
	}
}

func reply(request amqp.Delivery, kind string, headers amqp.Table, body []byte) {
	headers["CONTROL_TYPE"], headers["CLIENT_NAME"] = kind, given["client_name"]
	headers["CLIENT_INSTANCE"] = given["instance"]
	out := amqp.Publishing{Headers: headers, CorrelationId: request.CorrelationId, Body: body}
	check(control.Publish("", request.ReplyTo, false, false, out))
}

// A role has what ASSIGN_ROLE told, and what happened since its last report.
type role struct {
	Destinations []struct{ Exchange, Key string }
	Lines        []*line
	Envelopes    [][]byte
	HeaderFields object `json:"header_fields"`
	p            object // every parameter, also those above

	correlation    string
	connections    []*amqp.Connection
	over           context.Context // done when something went wrong: the first such thing is its cause
	end            context.CancelCauseFunc
	lock           sync.Mutex // for the list
	messages       []object
	count          atomic.Int32
	left           int
	started, ended int64
}

// A line is the channel of a publisher or a consumer, and what that has open.
type line struct {
	Index                int
	Connect              bool
	Exchange, Key, Queue string // no queue is the one that the channel declared last
	*amqp.Channel
	returns chan amqp.Return
	ended   chan struct{}
	last    uint64
	open    int
}

func newRole(correlation string) *role {
	r := &role{correlation: correlation, messages: []object{}}
	r.over, r.end = context.WithCancelCause(context.Background())
	return r
}

func (r *role) is(name string) bool    { return r.p[name].(bool) }
func (r *role) number(name string) int { return int(r.p[name].(float64)) }

// play does what a role is asked, one after the other: accept it when it is ready, then report.
func play(r *role, asked <-chan amqp.Delivery) {
	work := map[any]func(amqp.Delivery){"ASSIGN_ROLE": r.open, "START": r.start, "STATUS_REQUEST": r.status}
	for final := false; !final; {
		request := <-asked
		fields := amqp.Table{"CORRELATION_ID": r.correlation}
		r.attempt(func() { work[kindOf(request)](request) })
		if kindOf(request) == "ASSIGN_ROLE" && r.over.Err() == nil {
			reply(request, "ACCEPT_ROLE", fields, nil)
			continue
		}
		told := must(json.Marshal(r.report())) // before our own close, which may end in an error
		final = request.Headers["FINAL"] != false
		for at := 0; final && at < len(r.connections); at++ {
			_ = r.connections[at].Close() // the broker may have closed it already
		}
		fields["MESSAGE_COUNT"] = r.count.Load()
		reply(request, "REPORT", fields, told)
	}
}

// attempt does something and keeps what went wrong. A channel or connection is closed for us before we
// are told why, so who finds it closed waits for the broker's reason.
func (r *role) attempt(work func()) {
	defer func() {
		err, failed := recover().(error)
		switch err.(type) {
		case *amqp.Error, *net.OpError:
			time.AfterFunc(5*time.Second, func() { r.end(err) })
			<-r.over.Done()
		}
		if failed {
			r.end(err)
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

// drain gives what is in a channel now.
func drain[T any](from <-chan T) []T {
	all := []T{}
	for len(from) > 0 {
		all = append(all, <-from)
	}
	return all
}

func (r *role) list(message object) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.messages = append(r.messages, message)
}

func (r *role) report() object {
	r.lock.Lock()
	defer r.lock.Unlock()
	told := object{
		"messages": r.messages, "returned": []object{}, "left": r.left, "closed": nil, "error": "",
		"started_ns": fmt.Sprint(r.started), "ended_ns": fmt.Sprint(r.ended),
	}
	r.messages = []object{}
	for _, one := range r.Lines {
		for _, message := range drain(one.returns) {
			back := object{"code": message.ReplyCode, "headers": eachOf(message.Headers, tag)}
			told["returned"] = append(told["returned"].([]object), back)
		}
	}
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

// open opens each line and makes it ready; a receiver consumes from then on.
func (r *role) open(request amqp.Delivery) {
	check(json.Unmarshal(request.Body, r))
	check(json.Unmarshal(request.Body, &r.p))
	for _, one := range r.Lines {
		if one.Connect {
			r.connections = append(r.connections, must(amqp.Dial(given["url"])))
		}
		one.Channel = must(r.connections[len(r.connections)-1].Channel())
		go r.heed(one.NotifyClose(make(chan *amqp.Error, 1)))
		one.returns = one.NotifyReturn(make(chan amqp.Return, many))
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
	r.started = begun.UnixNano()
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
	}
	r.ended = time.Now().UnixNano()
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
	r.list(object{"publisher": one.Index, "sequence": sequence, "sha256": hash})
	r.count.Add(1)
	return confirm
}

// take looks at one delivery and acknowledges it as we were told, or puts it back.
func (r *role) take(one *line, message amqp.Delivery) {
	putBack := message.DeliveryTag <= uint64(r.number("requeue_first"))
	if putBack {
		check(message.Nack(false, true))
	} else {
		one.last, one.open = message.DeliveryTag, one.open+1
	}
	if r.is("ack_first") {
		r.acknowledge(one)
	}
	r.note(one.Index, message, putBack)
	if one.open == r.number("ack_every") {
		r.acknowledge(one)
	}
	r.commit(one, int(message.DeliveryTag))
}

// acknowledge settles what is open.
func (r *role) acknowledge(one *line) {
	if one.open > 0 && !r.is("no_ack") {
		check(one.Ack(one.last, r.number("ack_every") != 1))
	}
	one.open = 0
}

// status waits for so many messages, or so long; if this is final it then ends every consumer: cancel, take
// in what is on the way, acknowledge, delete what is ours.
func (r *role) status(request amqp.Delivery) {
	enough, patience := request.Headers["WAIT_COUNT"].(int32), request.Headers["WAIT_MS"].(int32)
	until := time.Now().Add(time.Duration(patience) * time.Millisecond)
	for r.count.Load() < enough && r.over.Err() == nil && time.Now().Before(until) {
		time.Sleep(time.Millisecond)
	}
	for _, one := range r.Lines {
		if one.ended == nil || request.Headers["FINAL"] != true {
			break
		}
		check(one.Cancel("lab", false))
		<-one.ended
		r.acknowledge(one)
		r.commit(one, 0)
		check(one.Qos(0, 0, false)) // the answer says that the broker has the acknowledgements
		if one.Queue == "" {
			r.left += must(one.QueueDelete("", false, false, false))
		}
	}
}

// note lists one delivery.
func (r *role) note(index int, message amqp.Delivery, putBack bool) {
	arrived := fmt.Sprint(time.Now().UnixNano())
	sequence, _ := message.Headers["SEQUENCE"].(int32)
	hash, differs := r.look(message.Body, int(sequence))
	r.list(object{
		"consumer": index, "redelivered": message.Redelivered, "put_back": putBack, "length": len(message.Body),
		"arrived_ns": arrived, "sha256": hash, "differs": differs, "headers": eachOf(message.Headers, tag),
		"properties": object{
			"content_type": message.ContentType, "content_encoding": message.ContentEncoding, "type": message.Type,
			"delivery_mode": message.DeliveryMode, "priority": message.Priority, "message_id": message.MessageId,
			"correlation_id": message.CorrelationId, "reply_to": message.ReplyTo, "expiration": message.Expiration,
			"user_id": message.UserId, "app_id": message.AppId,
		}, // the library does not tell absent from empty
		"body": map[bool][]byte{true: message.Body}[r.is("echo")],
	})
	if !putBack {
		r.count.Add(1)
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

// scalars has a value of each type whose text fmt reads and writes, by its tag.
var scalars = map[any]any{
	"t": false, "b": int8(0), "B": uint8(0), "s": int16(0), "u": uint16(0), "I": int32(0), "i": uint32(0),
	"l": int64(0), "f": float32(0), "d": float64(0),
}

// tag gives the tagged form of a header value.
func tag(value any) any {
	switch v := value.(type) {
	case nil:
		return []any{"V"}
	case string:
		if utf8.ValidString(v) {
			return []any{"S", v}
		}
		return tag([]byte(v))
	case []byte:
		return []any{"x", fmt.Sprintf("%x", v)}
	case amqp.Decimal:
		return []any{"D", fmt.Sprint(v.Scale), fmt.Sprint(v.Value)}
	case time.Time:
		return []any{"T", fmt.Sprint(v.Unix())}
	case []any:
		return []any{"A", each(v, tag)}
	case amqp.Table:
		return []any{"F", eachOf(v, tag)}
	}
	for letter, zero := range scalars {
		if reflect.TypeOf(zero) == reflect.TypeOf(value) {
			return []any{letter, fmt.Sprint(value)}
		}
	}
	panic(fmt.Errorf("a header value of type %T", value))
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
		return amqp.Decimal{Scale: scan("B", parts[1]).(uint8), Value: scan("I", parts[2]).(int32)}
	case "T":
		return time.Unix(scan("l", parts[1]).(int64), 0)
	case "A":
		return each(parts[1].([]any), untag)
	case "F":
		return amqp.Table(eachOf(parts[1].(object), untag))
	}
	return scan(parts[0], parts[1])
}

func scan(letter, text any) any {
	value := reflect.New(reflect.TypeOf(scalars[letter]))
	must(fmt.Sscan(text.(string), value.Interface()))
	return value.Elem().Interface()
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
