// The Go client of the lab (docs/reference/lab-protocol.md), on rabbitmq/amqp091-go.
//
// It does what it is told and reports what it did; it never judges. This file is the control
// conversation, role.go plays the roles, message.go makes and reads messages. A failure is a panic
// with the error: `attempt` makes it a part of a role's report, anywhere else it ends the client.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

type object = map[string]any

var (
	tests = strings.Fields("TC1_DummyRun TC2_BasicP2P TC3_BasicPubSub TC4_P2PMessageSize " +
		"TC5_PubSubMessageSize Circuit Envelope FieldTable")
	given    = map[string]string{}
	instance = fmt.Sprintf("go-%x", rand.Uint64())
	control  *amqp.Channel
	held     = map[string]chan amqp.Delivery{} // what each role is asked, by assignment
	silence  = time.AfterFunc(math.MaxInt64, func() {
		log.Print("nothing heard")
		os.Exit(3)
	})
)

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
	control = must(connect().Channel())
	must(control.QueueDeclare("", false, true, true, false, nil)) // below, no name is this queue
	check(control.QueueBind("", given["control_key"], "amq.topic", false, nil))
	check(control.QueueBind("", privateKey(), "amq.topic", false, nil))
	messages := must(control.Consume("", "", true, false, false, false, nil))
	fmt.Println("READY", given["client_name"])
	for message := range messages {
		handle(message, time.Now().UnixNano())
		hear()
	}
	panic("the control connection is lost")
}

func privateKey() string { return given["control_key"] + "." + given["client_name"] }

func connect() *amqp.Connection {
	return must(amqp.DialConfig("amqp://"+net.JoinHostPort(given["host"], given["port"]), amqp.Config{
		SASL:  []amqp.Authentication{&amqp.PlainAuth{Username: given["username"], Password: given["password"]}},
		Vhost: given["vhost"], Heartbeat: 30 * time.Second, Dial: amqp.DefaultDial(50 * time.Second),
	}))
}

// hear starts the time of silence anew, after which the client ends (IOP-5).
func hear() { silence.Reset(must(time.ParseDuration(given["control_timeout"] + "s"))) }

func isFinal(message amqp.Delivery) bool { return message.Headers["FINAL"] == true }

func kindOf(message amqp.Delivery) any {
	return cmp.Or(message.Headers["CONTROL_TYPE"], message.Headers["CONTROL_TOPIC"])
}

func handle(message amqp.Delivery, arrived int64) {
	switch kindOf(message) {
	case "INVITE":
		answerInvite(message)
	case "CLOCK_SYNCH":
		stamps := amqp.Table{"T1": message.Headers["T1"], "T2": arrived, "T3": time.Now().UnixNano()}
		reply(message, "CLOCK_SYNCH", stamps, object{})
	case "ASSIGN_ROLE":
		asked := make(chan amqp.Delivery, 16)
		asked <- message
		held[message.CorrelationId] = asked
		go play(asked)
	case "START", "STATUS_REQUEST":
		if asked := held[message.CorrelationId]; asked != nil {
			asked <- message
		}
		if isFinal(message) {
			delete(held, message.CorrelationId)
		}
	case "TERMINATE":
		os.Exit(0)
	}
}

func answerInvite(message amqp.Delivery) {
	test, named := message.Headers["TEST_NAME"].(string)
	if named && !slices.Contains(tests, test) {
		reply(message, "DECLINE", amqp.Table{"REASON": "there is no test " + test}, object{})
		return
	}
	open := maps.Clone(given)
	delete(open, "password")
	reply(message, "ENLIST", amqp.Table{"CLIENT_PRIVATE_CONTROL_KEY": privateKey()}, object{
		"protocol": 2, "language": "go", "runtime": runtime.Version(), "library": "amqp091-go",
		"library_version": "1.16.0", "platform": runtime.GOOS, "tests": tests, "given": open,
		"cannot": object{}, "field_tags": "tbBsuIilfdDSATFVx",
	})
}

// play does what a role is asked, one after the other: accept it when it is ready, then report.
func play(asked <-chan amqp.Delivery) {
	r := newRole()
	work := map[any]func(amqp.Delivery){"ASSIGN_ROLE": r.open, "START": r.start, "STATUS_REQUEST": r.status}
	for final := false; !final; {
		request := <-asked
		kind, fields := kindOf(request), amqp.Table{"CORRELATION_ID": r.correlation}
		r.attempt(func() { work[kind](request) })
		if kind == "ASSIGN_ROLE" && !r.failed() {
			reply(request, "ACCEPT_ROLE", fields, object{})
			continue
		}
		final = kind == "ASSIGN_ROLE" || isFinal(request)
		told := r.report() // before our own close, which may end in an error
		for _, connection := range r.connections {
			if final {
				_ = connection.Close() // the broker may have closed it already
			}
		}
		fields["MESSAGE_COUNT"] = r.count.Load()
		reply(request, "REPORT", fields, told)
	}
}

func reply(request amqp.Delivery, kind string, headers amqp.Table, body object) {
	headers["CONTROL_TYPE"], headers["CLIENT_NAME"], headers["CLIENT_INSTANCE"] = kind, given["client_name"], instance
	out := amqp.Publishing{Headers: headers, CorrelationId: request.CorrelationId, Body: must(json.Marshal(body))}
	check(control.Publish("", request.ReplyTo, false, false, out))
}
