// Laws of a failure: a close by the broker is told as one, however it is first noticed.
package main

import (
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
	r := newRole()
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
	r := newRole()
	closes := make(chan *amqp.Error, 1)
	close(closes)
	r.heed(closes)
	if r.failed() {
		t.Fatal("our own close is no failure")
	}
	r.end(io.EOF)
	r.attempt(func() { panic(&amqp.Error{Code: amqp.NotFound, Server: true}) })
	if told := r.report(); told["closed"] != nil || told["error"] != io.EOF.Error() {
		t.Fatalf("it reports %v", told)
	}
}

func TestALostConnectionIsAFailureEvenIfNobodyUsesIt(t *testing.T) {
	r := newRole()
	closes := make(chan *amqp.Error, 1)
	closes <- &amqp.Error{Code: amqp.FrameError, Reason: "EOF"}
	r.heed(closes)
	if said := r.report(); said["closed"] != nil || said["error"] == "" {
		t.Fatalf("it reports %v", said)
	}
}

func TestAnEnvelopeIsNamedByItsFirstTextThatIsNotEmpty(t *testing.T) {
	made := project([]byte(`{"job":"","urn":"u","attempts":2,"meta":{"lang":""}}`))
	_, lang := made.Headers["x-source-lang"]
	if made.Type != "u" || made.Headers["x-attempts"] != int32(2) || lang {
		t.Fatalf("it gives %v", made)
	}
}
