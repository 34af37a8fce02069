// The sender: publishers with a channel each, barriers, and the report of what was sent.
package main

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

type sender struct {
	client        *client
	test          string
	p             *parameters
	correlationID string
	connection    *amqp.Connection
	publishers    []*publisher
	extra         amqp.Table
	lock          sync.Mutex
	started, end  time.Time
	closed        *closing
	fault         string
	done          bool
}

type publisher struct {
	index    int
	channel  *amqp.Channel
	closes   chan *amqp.Error
	returns  chan amqp.Return
	flush    chan chan [][3]int
	numbers  []int
	sum      digest
	pending  int
	returned [][3]int
}

func (c *client) newSender(test string, p *parameters, correlation string) (role, *report) {
	s := &sender{client: c, test: test, p: p, correlationID: correlation}
	if err := s.open(); err != nil {
		s.fail(nil, err)
		told := s.report()
		s.close()
		return nil, &told
	}
	return s, nil
}

func (s *sender) open() (err error) {
	if s.extra, err = untagTable(s.p.HeaderFields); err != nil {
		return err
	}
	if s.p.Pattern != "none" {
		if s.connection, err = s.client.open(); err != nil {
			return err
		}
	}
	for index := range s.p.NumPublishers {
		one := &publisher{index: index, sum: newDigest(s.p.Check)}
		s.publishers = append(s.publishers, one)
		if s.connection == nil {
			continue
		}
		if one.channel, err = s.connection.Channel(); err != nil {
			return err
		}
		one.closes = one.channel.NotifyClose(make(chan *amqp.Error, 1))
		one.returns = one.channel.NotifyReturn(make(chan amqp.Return))
		one.flush = make(chan chan [][3]int)
		go one.collect()
		if s.p.Transactional {
			err = one.channel.Tx()
		} else {
			err = one.channel.Confirm(false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// collect takes in returned messages; a flush answers with all that came before it.
func (one *publisher) collect() {
	var returned [][3]int
	returns := one.returns
	for {
		select {
		case message, open := <-returns:
			if !open {
				returns = nil
				continue
			}
			sequence := integerOr(message.Headers["SEQUENCE"], -1)
			returned = append(returned, [3]int{one.index, sequence, int(message.ReplyCode)})
		case answer, open := <-one.flush:
			if !open {
				return
			}
			answer <- returned
		}
	}
}

func (s *sender) over() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.done
}

func (s *sender) start(headers amqp.Table) report {
	first, count := integerOr(headers["FIRST"], 0), integerOr(headers["MESSAGE_COUNT"], s.p.NumMessages)
	tx, _ := headers["TX"].(string)
	if s.connection == nil || len(s.p.Destinations) == 0 {
		count = 0
	}
	if s.started.IsZero() {
		s.started = time.Now()
	}
	if s.connection != nil {
		var all sync.WaitGroup
		for _, one := range s.publishers {
			all.Add(1)
			go func() {
				defer all.Done()
				if err := s.publish(one, first, count, tx); err != nil {
					s.fail(one, err)
				}
			}()
		}
		all.Wait()
	}
	s.end = time.Now()
	return s.finish(headers)
}

func (s *sender) status(headers amqp.Table) report { return s.finish(headers) }

// finish gathers what was returned, ends the role where that is asked for, and reports.
func (s *sender) finish(headers amqp.Table) report {
	for _, one := range s.publishers {
		if one.flush != nil {
			answer := make(chan [][3]int)
			one.flush <- answer
			one.returned = <-answer
		}
	}
	told := s.report()
	if final, given := headers["FINAL"].(bool); final || !given || s.closed != nil || s.fault != "" {
		s.close()
	}
	return told
}

func (s *sender) close() {
	s.lock.Lock()
	s.done = true
	s.lock.Unlock()
	if s.connection != nil {
		_ = s.connection.Close() // it may be closed by the broker already
	}
	for _, one := range s.publishers {
		if one.flush != nil {
			close(one.flush)
			one.flush = nil
		}
	}
}

func (s *sender) publish(one *publisher, first, count int, tx string) error {
	begun := time.Now()
	var confirms []*amqp.DeferredConfirmation
	for i := range count {
		if s.p.OutgoingRate > 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(float64(i) / s.p.OutgoingRate * float64(time.Second)))))
		}
		message, err := s.message(one.index, first+i)
		if err != nil {
			return err
		}
		to := s.p.Destinations[(one.index+first+i)%len(s.p.Destinations)]
		confirmation, err := one.channel.PublishWithDeferredConfirm(to.Exchange, to.Key, s.p.Mandatory, s.p.Immediate, message)
		if err != nil {
			return err
		}
		confirms = append(confirms, confirmation)
		one.numbers = append(one.numbers, first+i)
		one.sum.add(message.Body)
		if one.pending++; s.p.Transactional && tx != "none" && tx != "rollback" && one.pending == s.p.TxBatchSize {
			one.pending = 0
			if err := one.channel.TxCommit(); err != nil {
				return err
			}
		}
	}
	return s.settle(one, confirms, tx)
}

// settle is the barrier: confirms or the end of the transaction, then one synchronous call.
func (s *sender) settle(one *publisher, confirms []*amqp.DeferredConfirmation, tx string) (err error) {
	switch {
	case !s.p.Transactional:
		for _, one := range confirms {
			one.Wait() // an end of the channel resolves it too, and the call below tells
		}
	case s.p.Transactional && tx == "rollback":
		err = one.channel.TxRollback()
	case s.p.Transactional && tx != "none":
		err = one.channel.TxCommit()
	}
	if err != nil {
		return err
	}
	if s.p.Transactional && tx != "none" {
		one.pending = 0
	}
	return one.channel.Qos(0, 0, false)
}

func (s *sender) message(publisher, sequence int) (amqp.Publishing, error) {
	switch {
	case s.test == "Envelope" && len(s.p.Envelopes) > 0:
		return envelope(s.p.Envelopes[sequence%len(s.p.Envelopes)])
	case s.test == "FieldTable" && len(s.p.Tables) > 0:
		headers, err := untagTable(s.p.Tables[sequence%len(s.p.Tables)])
		return amqp.Publishing{Headers: headers, CorrelationId: s.correlationID}, err
	}
	headers := amqp.Table{
		"CLIENT_NAME": s.client.name, "PUBLISHER": int32(publisher), "SEQUENCE": int32(sequence),
	}
	for name, value := range s.extra {
		headers[name] = value
	}
	if s.p.Stamp {
		headers["SENT_NS"] = time.Now().UnixNano()
	}
	mode := amqp.Transient
	if s.p.Persistent {
		mode = amqp.Persistent
	}
	return amqp.Publishing{
		Headers: headers, CorrelationId: s.correlationID, DeliveryMode: mode,
		ContentType: "application/octet-stream", Body: body(s.p.Seed, sequence, s.p.MessageBytes),
	}, nil
}

// envelope projects a canonical envelope by the RabbitMQ binding; the body is not touched.
func envelope(raw []byte) (amqp.Publishing, error) {
	var read struct {
		Job, Urn *string
		Attempts *int64
		Trace    *string `json:"trace_id"`
		Meta     struct {
			ID, Lang *string
			Version  *int64 `json:"schema_version"`
		}
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		return amqp.Publishing{}, fmt.Errorf("an envelope: %w", err)
	}
	if read.Job == nil {
		read.Job = read.Urn
	}
	headers := amqp.Table{}
	if read.Meta.Version != nil {
		headers["x-schema-version"] = int32(*read.Meta.Version)
	}
	if read.Attempts != nil {
		headers["x-attempts"] = int32(*read.Attempts)
	}
	if read.Meta.Lang != nil {
		headers["x-source-lang"] = *read.Meta.Lang
	}
	return amqp.Publishing{
		Headers: headers, Body: raw, Type: text(read.Job), CorrelationId: text(read.Trace),
		MessageId: text(read.Meta.ID), AppId: "babelqueue", ContentType: "application/json",
		ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent,
	}, nil
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

func (s *sender) fail(one *publisher, err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	var closes <-chan *amqp.Error
	if one != nil {
		closes = one.closes
	}
	closed, fault := readFault(s.connection, closes, err)
	if s.closed == nil && s.fault == "" {
		s.closed, s.fault = closed, fault
	}
}

func (s *sender) report() report {
	sent, digests, returned, total := []string{}, []string{}, [][3]int{}, 0
	for _, one := range s.publishers {
		total += len(one.numbers)
		sent = append(sent, runs(one.numbers))
		digests = append(digests, one.sum.text())
		returned = append(returned, one.returned...)
	}
	return report{int32(total), s.correlationID, map[string]any{
		"role": "sender", "sent": sent, "digests": digests, "returned": returned, "closed": s.closed,
		"error": s.fault, "started_ns": nanoseconds(s.started), "ended_ns": nanoseconds(s.end),
	}}
}
