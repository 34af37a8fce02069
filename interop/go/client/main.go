// The Go client of the lab (docs/reference/lab-protocol.md), on rabbitmq/amqp091-go.
//
// It does what it is told and reports what it did; it never judges. This file is the control
// conversation, role.go plays the roles, message.go makes and reads messages.
//
// A failure is a panic with the error: `attempt` turns it into a part of a role's report, and
// anywhere else it ends the client.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var tests = strings.Fields("TC1_DummyRun TC2_BasicP2P TC3_BasicPubSub TC4_P2PMessageSize " +
	"TC5_PubSubMessageSize Circuit Envelope FieldTable")

type client struct {
	given                    map[string]string
	name, key, instance, url string
	control                  *amqp.Channel
	held                     map[string]chan amqp.Delivery // what each role is asked, by assignment
	heard                    atomic.Int64
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func stop(code int, why any) {
	fmt.Fprintln(os.Stderr, "go client:", why)
	os.Exit(code)
}

func main() {
	defer func() {
		if why := recover(); why != nil {
			stop(1, why)
		}
	}()
	given := map[string]string{}
	for _, word := range os.Args[1:] {
		name, value, _ := strings.Cut(word, "=")
		given[name] = value
	}
	uri := amqp.URI{
		Scheme: "amqp", Host: given["host"], Port: must(strconv.Atoi(given["port"])), Vhost: given["vhost"],
		Username: given["username"], Password: given["password"],
	}
	delete(given, "password")
	c := &client{
		given: given, name: given["client_name"], key: given["control_key"] + "." + given["client_name"],
		instance: fmt.Sprintf("go-%x", rand.Uint64()), url: uri.String(), held: map[string]chan amqp.Delivery{},
	}
	c.control = must(c.open().Channel())
	queue := must(c.control.QueueDeclare("", false, true, true, false, nil)).Name
	check(c.control.QueueBind(queue, given["control_key"], "amq.topic", false, nil))
	check(c.control.QueueBind(queue, c.key, "amq.topic", false, nil))
	messages := must(c.control.Consume(queue, "", true, false, false, false, nil))
	fmt.Println("READY", c.name)
	for message := range messages {
		arrived := time.Now().UnixNano()
		if c.heard.Swap(arrived) == 0 {
			go c.watch(seconds(must(strconv.ParseFloat(given["control_timeout"], 64))))
		}
		c.handle(message, arrived)
	}
	stop(1, "the control connection is lost")
}

func (c *client) open() *amqp.Connection {
	return must(amqp.DialConfig(c.url, amqp.Config{
		Heartbeat: 30 * time.Second, Dial: amqp.DefaultDial(50 * time.Second),
	}))
}

// watch ends the client after too long a silence (IOP-5).
func (c *client) watch(limit time.Duration) {
	for time.Since(time.Unix(0, c.heard.Load())) < limit {
		time.Sleep(limit / 20)
	}
	stop(3, "nothing heard")
}

func kindOf(message amqp.Delivery) any {
	return cmp.Or(message.Headers["CONTROL_TYPE"], message.Headers["CONTROL_TOPIC"])
}

func (c *client) handle(message amqp.Delivery, arrived int64) {
	switch kindOf(message) {
	case "INVITE":
		c.answerInvite(message)
	case "CLOCK_SYNCH":
		stamps := amqp.Table{"T1": message.Headers["T1"], "T2": arrived, "T3": time.Now().UnixNano()}
		c.reply(message, "CLOCK_SYNCH", stamps, nil)
	case "ASSIGN_ROLE":
		asked := make(chan amqp.Delivery, 16)
		asked <- message
		c.held[message.CorrelationId] = asked
		go c.play(asked)
	case "START", "STATUS_REQUEST":
		if asked := c.held[message.CorrelationId]; asked != nil {
			asked <- message
		}
		if message.Headers["FINAL"] == true {
			delete(c.held, message.CorrelationId)
		}
	case "TERMINATE":
		os.Exit(0)
	}
}

func (c *client) answerInvite(message amqp.Delivery) {
	test, named := message.Headers["TEST_NAME"].(string)
	if named && !slices.Contains(tests, test) {
		c.reply(message, "DECLINE", amqp.Table{"REASON": "there is no test " + test}, nil)
		return
	}
	c.reply(message, "ENLIST", amqp.Table{"CLIENT_PRIVATE_CONTROL_KEY": c.key}, object{
		"protocol": 2, "language": "go", "runtime": runtime.Version(), "library": "amqp091-go",
		"library_version": "1.16.0", "platform": runtime.GOOS, "tests": tests, "given": c.given,
		"cannot": object{}, "field_tags": "tbBsuIilfdDSATFVx",
	})
}

// play does what a role is asked, one after the other: accept it when it is ready, then report.
func (c *client) play(asked <-chan amqp.Delivery) {
	r := newRole(c)
	for final := false; !final; {
		request := <-asked
		final = request.Headers["FINAL"] == true
		switch kindOf(request) {
		case "ASSIGN_ROLE":
			if r.attempt(func() { r.open(request) }); !r.failed() {
				c.reply(request, "ACCEPT_ROLE", amqp.Table{"CORRELATION_ID": r.correlation}, nil)
				continue
			}
			final = true
		case "START":
			r.attempt(func() { r.start(request.Headers) })
		case "STATUS_REQUEST":
			r.attempt(func() { r.status(request.Headers, final) })
		}
		told := r.report() // before our own close, which may end in an error
		for _, connection := range r.connections {
			if final {
				_ = connection.Close() // the broker may have closed it already
			}
		}
		fields := amqp.Table{"MESSAGE_COUNT": r.count.Load(), "CORRELATION_ID": r.correlation}
		c.reply(request, "REPORT", fields, told)
	}
}

func (c *client) reply(request amqp.Delivery, kind string, headers amqp.Table, body object) {
	headers["CONTROL_TYPE"], headers["CLIENT_NAME"], headers["CLIENT_INSTANCE"] = kind, c.name, c.instance
	out := amqp.Publishing{Headers: headers, CorrelationId: request.CorrelationId}
	if body != nil {
		out.Body = must(json.Marshal(body))
	}
	check(c.control.Publish("", request.ReplyTo, false, false, out))
}
