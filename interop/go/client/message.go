// What the roles share: parameters, seeded bodies, runs of numbers, digests and tagged values.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

type destination struct{ Exchange, Key, Queue string }

type parameters struct {
	Pattern           string                       `json:"pattern"`
	Destinations      []destination                `json:"destinations"`
	NumPublishers     int                          `json:"num_publishers"`
	NumMessages       int                          `json:"num_messages"`
	MessageBytes      int                          `json:"message_bytes"`
	Seed              uint32                       `json:"seed"`
	Consumers         []consumerPlace              `json:"consumers"`
	ConsumerOutActive bool                         `json:"consumer_out_active"`
	Persistent        bool                         `json:"persistent"`
	Mandatory         bool                         `json:"mandatory"`
	Immediate         bool                         `json:"immediate"`
	Transactional     bool                         `json:"transactional"`
	TxBatchSize       int                          `json:"tx_batch_size"`
	OutgoingRate      float64                      `json:"outgoing_rate"`
	InboundRate       float64                      `json:"inbound_rate"`
	AckMode           string                       `json:"ack_mode"`
	NoLocal           bool                         `json:"no_local"`
	Exclusive         bool                         `json:"exclusive"`
	PrefetchCount     int                          `json:"prefetch_count"`
	HeaderFields      map[string]json.RawMessage   `json:"header_fields"`
	Check             string                       `json:"check"`
	Stamp             bool                         `json:"stamp"`
	ClockShift        string                       `json:"clock_shift_ns"`
	Envelopes         [][]byte                     `json:"envelopes"`
	Tables            []map[string]json.RawMessage `json:"tables"`
	Echo              bool                         `json:"echo"`
	RequeueFirst      int                          `json:"requeue_first"`
}

type consumerPlace struct {
	Index       int `json:"index"`
	Destination int `json:"destination"`
}

// readParameters takes the body over what the command line gave over the defaults.
func readParameters(given map[string]json.RawMessage, body []byte) (*parameters, error) {
	p := &parameters{
		Pattern: "p2p", NumPublishers: 1, NumMessages: 100, Seed: 1, ConsumerOutActive: true,
		TxBatchSize: 100, AckMode: "auto", Check: "hash", ClockShift: "0",
	}
	first, _ := json.Marshal(given)
	if err := json.Unmarshal(first, p); err != nil {
		return nil, fmt.Errorf("a parameter of the command line: %w", err)
	}
	if len(body) == 0 {
		return p, nil
	}
	return p, json.Unmarshal(body, p)
}

// body gives n bytes of message i: the first 31 bytes of a hash, over and over.
func body(seed uint32, i, n int) []byte {
	pattern := sha256.Sum256(fmt.Appendf(nil, "%d.%d", seed, i))
	return bytes.Repeat(pattern[:31], n/31+1)[:n]
}

// firstDifference gives the offset where two bodies part, or -1.
func firstDifference(one, other []byte) int {
	if bytes.Equal(one, other) {
		return -1
	}
	shorter := min(len(one), len(other))
	for at := range shorter {
		if one[at] != other[at] {
			return at
		}
	}
	return shorter
}

// runs writes numbers as they happened, ascending neighbours together: 0-3,5,4,6-49.
func runs(numbers []int) string {
	var out []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if j > i {
			out = append(out, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		} else {
			out = append(out, strconv.Itoa(numbers[i]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

type digest struct{ sum hash.Hash }

func newDigest(check string) digest {
	if check != "hash" {
		return digest{}
	}
	return digest{sha256.New()}
}

func (d digest) add(body []byte) {
	if d.sum != nil {
		one := sha256.Sum256(body)
		d.sum.Write(one[:])
	}
}

func (d digest) text() string {
	if d.sum == nil {
		return ""
	}
	return hex.EncodeToString(d.sum.Sum(nil))
}

type closing struct {
	Level string `json:"level"`
	Code  int    `json:"code"`
	Text  string `json:"text"`
}

// readFault tells a close by the broker from any other failure.
func readFault(connection *amqp.Connection, closed <-chan *amqp.Error, err error) (*closing, string) {
	var fault *amqp.Error
	select {
	case fault = <-closed:
	default:
	}
	if fault == nil && !errors.As(err, &fault) {
		if err == nil {
			return nil, ""
		}
		return nil, err.Error()
	}
	if !fault.Server {
		return nil, fault.Error()
	}
	level := "channel"
	if connection == nil || connection.IsClosed() {
		level = "connection"
	}
	return &closing{level, fault.Code, fault.Reason}, ""
}

// tag gives the tagged form of a header value.
func tag(value any) any {
	switch v := value.(type) {
	case bool:
		return []any{"t", v}
	case int8:
		return []any{"b", strconv.FormatInt(int64(v), 10)}
	case uint8:
		return []any{"B", strconv.FormatInt(int64(v), 10)}
	case int16:
		return []any{"s", strconv.FormatInt(int64(v), 10)}
	case uint16:
		return []any{"u", strconv.FormatInt(int64(v), 10)}
	case int32:
		return []any{"I", strconv.FormatInt(int64(v), 10)}
	case uint32:
		return []any{"i", strconv.FormatInt(int64(v), 10)}
	case int64:
		return []any{"l", strconv.FormatInt(v, 10)}
	case float32:
		return []any{"f", fmt.Sprintf("0x%08x", math.Float32bits(v))}
	case float64:
		return []any{"d", fmt.Sprintf("0x%016x", math.Float64bits(v))}
	case amqp.Decimal:
		return []any{"D", strconv.Itoa(int(v.Scale)), strconv.Itoa(int(v.Value))}
	case string:
		if !utf8.ValidString(v) {
			return []any{"x", hex.EncodeToString([]byte(v))}
		}
		return []any{"S", v}
	case time.Time:
		return []any{"T", strconv.FormatInt(v.Unix(), 10)}
	case []byte:
		return []any{"x", hex.EncodeToString(v)}
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			out = append(out, tag(one))
		}
		return []any{"A", out}
	case amqp.Table:
		return []any{"F", tagTable(v)}
	}
	return []any{"V"}
}

func tagTable(table amqp.Table) map[string]any {
	out := map[string]any{}
	for name, value := range table {
		out[name] = tag(value)
	}
	return out
}

func untagTable(tagged map[string]json.RawMessage) (amqp.Table, error) {
	out := amqp.Table{}
	for name, raw := range tagged {
		value, err := untag(raw)
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

// untag gives the library's value for a tagged one.
func untag(raw json.RawMessage) (any, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, err
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		_ = json.Unmarshal(part, &texts[i]) // what is no text is read below
	}
	switch texts[0] {
	case "t":
		return string(parts[1]) == "true", nil
	case "A":
		var items []json.RawMessage
		if err := json.Unmarshal(parts[1], &items); err != nil {
			return nil, err
		}
		out := make([]any, 0, len(items))
		for _, item := range items {
			value, err := untag(item)
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
		return out, nil
	case "F":
		var items map[string]json.RawMessage
		if err := json.Unmarshal(parts[1], &items); err != nil {
			return nil, err
		}
		return untagTable(items)
	case "S":
		return texts[1], nil
	case "x":
		return hex.DecodeString(texts[1])
	case "V":
		return nil, nil
	case "f":
		bits, err := strconv.ParseUint(texts[1], 0, 32)
		return math.Float32frombits(uint32(bits)), err
	case "d":
		bits, err := strconv.ParseUint(texts[1], 0, 64)
		return math.Float64frombits(bits), err
	case "D":
		scale, err := strconv.ParseUint(texts[1], 10, 8)
		if err != nil {
			return nil, err
		}
		value, err := strconv.ParseInt(texts[2], 10, 32)
		return amqp.Decimal{Scale: uint8(scale), Value: int32(value)}, err
	}
	return untagInteger(texts)
}

func untagInteger(texts []string) (any, error) {
	number, err := strconv.ParseInt(texts[1], 10, 64)
	if err != nil {
		return nil, err
	}
	switch texts[0] {
	case "b":
		return int8(number), nil
	case "B":
		return uint8(number), nil
	case "s":
		return int16(number), nil
	case "u":
		return uint16(number), nil
	case "I":
		return int32(number), nil
	case "i":
		return uint32(number), nil
	case "l":
		return number, nil
	case "T":
		return time.Unix(number, 0), nil
	}
	return nil, fmt.Errorf("the library has no header value of type %q", texts[0])
}

// integer reads a header of any integer type.
func integer(value any) (int64, bool) {
	switch v := value.(type) {
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

func integerOr(value any, otherwise int) int {
	if number, there := integer(value); there {
		return int(number)
	}
	return otherwise
}

func nanoseconds(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixNano(), 10)
}
