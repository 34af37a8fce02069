// Laws of a failure: a close by the broker is told as one, however it is first noticed.
package main

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestAClosedChannelWaitsForTheReasonOfTheBroker(t *testing.T) {
	r := newRole(&client{}, "c")
	closes := make(chan *amqp.Error, 1)
	go r.heed(closes)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.fail(amqp.ErrClosed)
	}()
	select {
	case <-ended:
		t.Fatalf("it did not wait: error %q", r.fault)
	case <-time.After(50 * time.Millisecond):
	}
	closes <- &amqp.Error{Code: amqp.NotFound, Reason: "no queue", Server: true}
	<-ended
	if r.fault != "" || r.closed["code"] != amqp.NotFound || r.closed["level"] != "channel" {
		t.Fatalf("closed %v, error %q", r.closed, r.fault)
	}
}

func TestOurOwnCloseIsNoFailureAndTheFirstFailureStays(t *testing.T) {
	r := newRole(&client{}, "c")
	closes := make(chan *amqp.Error)
	close(closes)
	r.heed(closes)
	if r.failed() {
		t.Fatal("our own close is no failure")
	}
	r.fail(amqp.ErrFrame)
	r.fail(&amqp.Error{Code: amqp.NotFound, Server: true})
	if r.closed != nil || r.fault != amqp.ErrFrame.Error() {
		t.Fatalf("closed %v, error %q", r.closed, r.fault)
	}
}
