// Laws of a failure: a close by the broker is told as one, however it is first noticed.
package main

import (
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestAClosedChannelWaitsForTheReasonOfTheBroker(t *testing.T) {
	for _, found := range []error{amqp.ErrClosed, &net.OpError{Op: "write", Err: net.ErrClosed}} {
		waits(t, found)
	}
}

func waits(t *testing.T, found error) {
	r := newRole("c")
	closes, ended := make(chan *amqp.Error, 1), make(chan struct{})
	go r.heed(closes)
	go func() {
		defer close(ended)
		r.attempt(func() { panic(found) })
	}()
	select {
	case <-ended:
		t.Fatalf("it did not wait: %v", r.report())
	case <-time.After(50 * time.Millisecond):
	}
	closes <- &amqp.Error{Code: amqp.NotFound, Reason: "no queue", Server: true}
	<-ended
	said, there := r.report()["closed"].(object)
	if !there || r.report()["error"] != "" || said["code"] != amqp.NotFound || said["level"] != "channel" {
		t.Fatalf("it reports %v", r.report())
	}
}

func TestOurOwnCloseIsNoFailureAndTheFirstFailureStays(t *testing.T) {
	r := newRole("c")
	closes := make(chan *amqp.Error, 1)
	close(closes)
	r.heed(closes)
	if r.over.Err() != nil {
		t.Fatal("our own close is no failure")
	}
	r.end(io.EOF)
	r.attempt(func() { panic(&amqp.Error{Code: amqp.NotFound, Server: true}) })
	if told := r.report(); told["closed"] != nil || told["error"] != io.EOF.Error() {
		t.Fatalf("it reports %v", told)
	}
}

func TestALostConnectionIsAFailureEvenIfNobodyUsesIt(t *testing.T) {
	r := newRole("c")
	closes := make(chan *amqp.Error, 1)
	closes <- &amqp.Error{Code: amqp.FrameError, Reason: "EOF"}
	r.heed(closes)
	if said := r.report(); said["closed"] != nil || said["error"] == "" {
		t.Fatalf("it reports %v", said)
	}
}

func TestAnEnvelopeIsNamedByItsFirstTextThatIsNotEmpty(t *testing.T) {
	made := project([]byte(`{"job":"","urn":"u","attempts":2,"meta":{"lang":""}}`))
	if _, version := made.Headers["x-schema-version"]; made.Type != "u" || version {
		t.Fatalf("it gives %v", made)
	}
	if made.Headers["x-attempts"] != int32(2) || made.Headers["x-source-lang"] != "" {
		t.Fatalf("what is empty is not absent: %v", made.Headers)
	}
}

func TestAFailureThatIsNotTheBrokersIsToldAtOnce(t *testing.T) {
	begun := time.Now()
	r := newRole("c")
	r.attempt(func() { r.open(amqp.Delivery{Body: []byte("no JSON")}) })
	if told := r.report(); told["error"] == "" || time.Since(begun) > time.Second {
		t.Fatalf("it reports %v after %v", told, time.Since(begun))
	}
}

func TestTheFirstDifferenceIsWhereTwoBodiesPart(t *testing.T) {
	r := newRole("c")
	r.p = object{"check": "hash", "seed": 1.0, "message_bytes": 40.0}
	for at, made := range map[int]func([]byte) []byte{
		-1: func(body []byte) []byte { return body },
		0:  func([]byte) []byte { return []byte("another body") },
		35: func(body []byte) []byte { body[35] ^= 1; return body },
		39: func(body []byte) []byte { return body[:39] },
		40: func(body []byte) []byte { return append(body, 0) },
	} {
		if _, differs := r.look(made(r.body(3)), 3); differs != at {
			t.Errorf("it is %d, not %d", differs, at)
		}
	}
}

func TestEveryTypeOfAHeaderValueIsReadAsItWasWritten(t *testing.T) {
	for _, text := range []string{
		`["t","true"]`, `["b","-1"]`, `["B","255"]`, `["I","-7"]`, `["l","-9223372036854775808"]`, `["f","0.1"]`,
		`["d","NaN"]`, `["D","2","-314"]`, `["S","ü x"]`, `["T","5"]`, `["x","00ff"]`, `["V"]`,
		`["A",[["S",""],["V"]]]`, `["F",{"a":["i","1"]}]`,
	} {
		var tagged any
		check(json.Unmarshal([]byte(text), &tagged))
		if again := string(must(json.Marshal(tag(untag(tagged))))); again != text {
			t.Errorf("%s becomes %s", text, again)
		}
	}
}
