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

func (r *role) says(kind string) []any {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.told[kind]
}

func waits(t *testing.T, found error) {
	r := newRole("c")
	closes, ended := make(chan *amqp.Error, 1), make(chan struct{})
	go r.heed(&amqp.Connection{}, closes)
	go func() {
		defer close(ended)
		r.attempt(func() { panic(found) })
	}()
	select {
	case <-ended:
		t.Fatalf("it did not wait: %v", r.told)
	case <-time.After(50 * time.Millisecond):
	}
	closes <- &amqp.Error{Code: amqp.NotFound, Reason: "no queue", Server: true}
	<-ended
	said := r.says("closed")
	if len(said) != 1 || said[0].(object)["code"] != amqp.NotFound || said[0].(object)["level"] != "channel" {
		t.Fatalf("it reports %v", r.told)
	}
}

func TestOurOwnCloseIsNoFailure(t *testing.T) {
	r := newRole("c")
	closes := make(chan *amqp.Error, 1)
	close(closes)
	r.heed(&amqp.Connection{}, closes)
	if r.failed.Load() || len(r.told) > 0 {
		t.Fatal("our own close is no failure")
	}
}

func TestWhatFailedBeforeIsToldAtOnceAndInOrder(t *testing.T) {
	r := newRole("c")
	r.attempt(func() { panic(io.EOF) })
	r.attempt(func() { panic(&amqp.Error{Code: amqp.NotFound, Server: true}) })
	if said := r.says("error"); len(said) != 2 || said[0] != io.EOF.Error() || r.says("closed") != nil {
		t.Fatalf("it reports %v", r.told)
	}
}

func TestALostConnectionIsAFailureEvenIfNobodyUsesIt(t *testing.T) {
	r := newRole("c")
	closes := make(chan *amqp.Error, 1)
	closes <- &amqp.Error{Code: amqp.FrameError, Reason: "EOF"}
	close(closes)
	r.heed(&amqp.Connection{}, closes)
	if r.says("closed") != nil || len(r.says("error")) != 1 || !r.failed.Load() {
		t.Fatalf("it reports %v", r.told)
	}
}

func TestAReportListsWhatIsNew(t *testing.T) {
	r := newRole("c")
	r.tell("left", 1)
	r.tell("left", 2)
	if told := r.report(); told != `{"left":[1,2]}` {
		t.Fatalf("it reports %s", told)
	}
	if told := r.report(); told != `{}` {
		t.Fatalf("it reports %s again", told)
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
	r.attempt(func() { check(json.Unmarshal([]byte("no JSON"), r)) })
	if told := r.says("error"); len(told) != 1 || time.Since(begun) > time.Second {
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
	for text, told := range map[string]string{
		`["t","true"]`:                 `{"bool":true}`,
		`["b","-1"]`:                   `{"int8":-1}`,
		`["B","255"]`:                  `{"uint8":255}`,
		`["I","-7"]`:                   `{"int32":-7}`,
		`["f","0.1"]`:                  `{"float32":"0.1"}`,
		`["d","NaN"]`:                  `{"float64":"NaN"}`,
		`["D","2","-314"]`:             `{"amqp091.Decimal":{"Scale":2,"Value":-314}}`,
		`["S","ü x"]`:                  `{"string":"ü x"}`,
		`["x","00ff"]`:                 `{"[]uint8":"AP8="}`,
		`["V"]`:                        `{"\u003cnil\u003e":null}`,
		`["A",[["S",""],["V"]]]`:       `{"[]interface {}":[{"string":""},{"\u003cnil\u003e":null}]}`,
		`["F",{"a":["i","1"]}]`:        `{"amqp091.Table":{"a":{"uint32":1}}}`,
		`["l","-9223372036854775808"]`: `{"int64":-9223372036854775808}`,
	} {
		var tagged any
		check(json.Unmarshal([]byte(text), &tagged))
		if again := string(must(json.Marshal(tag(untag(tagged))))); again != told {
			t.Errorf("%s becomes %s", text, again)
		}
	}
	if when := untag([]any{"T", "5"}).(time.Time); !when.Equal(time.Unix(5, 0)) {
		t.Errorf("a timestamp becomes %v", when)
	}
}
