// The Go client of the lab (docs/reference/lab-protocol.md), on rabbitmq/amqp091-go.
//
// It does what it is told and reports what it did; it never judges. This file is the control
// conversation; sender.go and receiver.go play the roles, message.go makes and reads messages.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	libraryVersion = "1.16.0"
	exitLost       = 1
	exitUsage      = 2
	exitSilence    = 3
)

var tests = []string{
	"TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize",
	"TC5_PubSubMessageSize", "Circuit", "Envelope", "FieldTable",
}

// A role is a sender or a receiver of one assignment.
type role interface {
	start(headers amqp.Table) report
	status(headers amqp.Table) report
	over() bool
}

type report struct {
	count         int32
	correlationID string
	body          any
}

type client struct {
	name, key, instance, url string
	given                    map[string]json.RawMessage
	control                  *amqp.Channel
	lock                     sync.Mutex
	roles                    map[string]role
	assigned                 int
	heard                    time.Time
}

func main() {
	options, err := readArguments(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage)
	}
	if err := converse(options); err != nil {
		fmt.Fprintln(os.Stderr, "go client:", err)
		os.Exit(exitLost)
	}
}

func readArguments(arguments []string) (map[string]string, error) {
	options := map[string]string{
		"-b": "127.0.0.1", "-p": "5672", "-v": "/", "username": "guest", "password": "guest",
		"client_name": "go", "control_key": "iop.control", "control_timeout": "60",
	}
	for i := 0; i < len(arguments); i++ {
		one := arguments[i]
		name, value, pair := strings.Cut(one, "=")
		switch {
		case one == "-b" || one == "-p" || one == "-v":
			if i++; i == len(arguments) {
				return nil, fmt.Errorf("%s needs a value", one)
			}
			options[one] = arguments[i]
		case pair && name != "" && !strings.HasPrefix(name, "-"):
			options[name] = value
		default:
			return nil, fmt.Errorf("%q is neither -b, -p, -v nor name=value", one)
		}
	}
	if _, err := strconv.ParseFloat(options["control_timeout"], 64); err != nil {
		return nil, errors.New("control_timeout is a number of seconds")
	}
	return options, nil
}

// parametersGiven gives the options that are parameters of test cases, as JSON values (IOP-21).
func parametersGiven(options map[string]string) map[string]json.RawMessage {
	ours := []string{"-b", "-p", "-v", "username", "password", "client_name", "control_key", "control_timeout", "start_timeout"}
	given := map[string]json.RawMessage{}
	for name, value := range options {
		if slices.Contains(ours, name) {
			continue
		}
		if json.Valid([]byte(value)) {
			given[name] = json.RawMessage(value)
		} else {
			given[name], _ = json.Marshal(value)
		}
	}
	return given
}

func converse(options map[string]string) error {
	uri := amqp.URI{Scheme: "amqp", Host: options["-b"], Username: options["username"], Password: options["password"], Vhost: options["-v"]}
	port, err := strconv.Atoi(options["-p"])
	if err != nil {
		return err
	}
	uri.Port = port
	c := &client{
		name: options["client_name"], key: options["control_key"] + "." + options["client_name"], instance: randomID(), url: uri.String(),
		given: parametersGiven(options), roles: map[string]role{},
	}
	connection, err := c.open()
	if err != nil {
		return err
	}
	defer connection.Close()
	if c.control, err = connection.Channel(); err != nil {
		return err
	}
	queue, err := c.control.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return err
	}
	for _, key := range []string{options["control_key"], c.key} {
		if err := c.control.QueueBind(queue.Name, key, "amq.topic", false, nil); err != nil {
			return err
		}
	}
	messages, err := c.control.Consume(queue.Name, "", true, false, false, false, nil)
	if err != nil {
		return err
	}
	fmt.Println("READY", c.name)
	seconds, _ := strconv.ParseFloat(options["control_timeout"], 64)
	return c.listen(messages, time.Duration(seconds*float64(time.Second)))
}

// listen handles control messages until TERMINATE; silence after the first ENLIST ends it (IOP-5).
func (c *client) listen(messages <-chan amqp.Delivery, limit time.Duration) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case message, open := <-messages:
			if !open {
				return errors.New("the control connection is lost")
			}
			arrived := time.Now()
			c.touch(arrived)
			if c.handle(message, arrived) {
				return nil
			}
		case now := <-ticker.C:
			if c.silent(now, limit) {
				fmt.Fprintln(os.Stderr, "go client: nothing heard for", limit)
				os.Exit(exitSilence)
			}
		}
	}
}

// touch notes that something was heard; before the first ENLIST nothing is expected.
func (c *client) touch(now time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if !c.heard.IsZero() {
		c.heard = now
	}
}

func (c *client) silent(now time.Time, limit time.Duration) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return !c.heard.IsZero() && now.Sub(c.heard) > limit
}

func (c *client) handle(message amqp.Delivery, arrived time.Time) (terminate bool) {
	kind, _ := message.Headers["CONTROL_TYPE"].(string)
	if kind == "" {
		kind, _ = message.Headers["CONTROL_TOPIC"].(string)
	}
	switch kind {
	case "INVITE":
		c.answerInvite(message)
	case "ASSIGN_ROLE":
		c.lock.Lock()
		c.assigned++
		correlation := fmt.Sprintf("%s.%d", c.instance, c.assigned)
		c.lock.Unlock()
		go c.assign(message, correlation)
	case "START", "STATUS_REQUEST":
		c.lock.Lock()
		found := c.roles[message.CorrelationId]
		c.lock.Unlock()
		if found != nil {
			go c.play(found, kind, message)
		}
	case "CLOCK_SYNCH":
		c.reply(message, amqp.Table{
			"CONTROL_TYPE": kind, "T1": message.Headers["T1"],
			"T2": arrived.UnixNano(), "T3": time.Now().UnixNano(),
		}, nil)
	case "TERMINATE":
		return true
	}
	return false
}

func (c *client) answerInvite(message amqp.Delivery) {
	headers := amqp.Table{"CONTROL_TYPE": "ENLIST", "CLIENT_PRIVATE_CONTROL_KEY": c.key}
	var body any
	test, named := message.Headers["TEST_NAME"].(string)
	switch {
	case !named:
		body = map[string]any{
			"protocol": 1, "language": "go", "runtime": runtime.Version(), "library": "amqp091-go",
			"library_version": libraryVersion, "platform": runtime.GOOS, "tests": tests,
			"cannot": map[string]string{}, "field_tags": "tbBsuIilfdDSATFVx",
		}
	case !slices.Contains(tests, test):
		headers = amqp.Table{"CONTROL_TYPE": "DECLINE", "REASON": "there is no test " + test}
	default:
		headers["ROLES"] = "SENDER,RECEIVER"
	}
	c.reply(message, headers, body)
	c.lock.Lock()
	defer c.lock.Unlock()
	if headers["CONTROL_TYPE"] == "ENLIST" {
		c.heard = time.Now()
	}
}

// assign opens what the role needs and accepts it; what the broker refuses is reported (IOP-29).
func (c *client) assign(message amqp.Delivery, correlation string) {
	parameters, err := readParameters(c.given, message.Body)
	if err != nil {
		c.reply(message, amqp.Table{"CONTROL_TYPE": "DECLINE", "REASON": err.Error()}, nil)
		return
	}
	test, _ := message.Headers["TEST_NAME"].(string)
	accept := amqp.Table{"CONTROL_TYPE": "ACCEPT_ROLE"}
	var opened role
	var failed *report
	if message.Headers["ROLE"] == "SENDER" {
		accept["CORRELATION_ID"] = correlation
		opened, failed = c.newSender(test, parameters, correlation)
	} else {
		opened, failed = c.newReceiver(parameters)
	}
	if failed != nil {
		c.send(message, *failed)
		return
	}
	c.lock.Lock()
	c.roles[message.CorrelationId] = opened
	c.lock.Unlock()
	c.reply(message, accept, nil)
}

func (c *client) play(found role, kind string, message amqp.Delivery) {
	var told report
	if kind == "START" {
		told = found.start(message.Headers)
	} else {
		told = found.status(message.Headers)
	}
	if found.over() {
		c.lock.Lock()
		delete(c.roles, message.CorrelationId)
		c.lock.Unlock()
	}
	c.send(message, told)
}

func (c *client) send(request amqp.Delivery, told report) {
	headers := amqp.Table{"CONTROL_TYPE": "REPORT", "MESSAGE_COUNT": told.count}
	if told.correlationID != "" {
		headers["CORRELATION_ID"] = told.correlationID
	}
	c.reply(request, headers, told.body)
}

func (c *client) reply(request amqp.Delivery, headers amqp.Table, body any) {
	headers["CLIENT_NAME"], headers["CLIENT_INSTANCE"] = c.name, c.instance
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body)
	}
	out := amqp.Publishing{Headers: headers, CorrelationId: request.CorrelationId, Body: text}
	if err := c.control.Publish("", request.ReplyTo, false, false, out); err != nil {
		fmt.Fprintln(os.Stderr, "go client: a reply was not sent:", err)
	}
}

func (c *client) open() (*amqp.Connection, error) {
	return amqp.DialConfig(c.url, amqp.Config{
		Heartbeat: 30 * time.Second,
		Dial: func(network, address string) (net.Conn, error) {
			return net.DialTimeout(network, address, 50*time.Second)
		},
	})
}

func randomID() string {
	raw := make([]byte, 8)
	_, _ = rand.Read(raw)
	return "go-" + hex.EncodeToString(raw)
}
