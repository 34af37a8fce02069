// Messages: seeded bodies, envelopes, properties, and header values as tagged JSON.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// makeBody gives the body of a message: the first 31 bytes of a hash, over and over.
func makeBody(seed, sequence, size int) []byte {
	pattern := sha256.Sum256(fmt.Appendf(nil, "%d.%d", seed, sequence))
	return bytes.Repeat(pattern[:31], size/31+1)[:size]
}

// firstDifference gives the offset where two bodies part, or -1.
func firstDifference(one, other []byte) int {
	if bytes.Equal(one, other) {
		return -1
	}
	at := 0
	for at < len(one) && at < len(other) && one[at] == other[at] {
		at++
	}
	return at
}

// project carries an envelope as the RabbitMQ binding says; the body is not touched.
func project(raw []byte) amqp.Publishing {
	var read struct {
		Job, Urn string
		Attempts *int32
		Trace    string `json:"trace_id"`
		Meta     struct {
			ID, Lang string
			Version  *int32 `json:"schema_version"`
		}
	}
	check(json.Unmarshal(raw, &read))
	headers := amqp.Table{}
	if read.Meta.Version != nil {
		headers["x-schema-version"] = *read.Meta.Version
	}
	if read.Attempts != nil {
		headers["x-attempts"] = *read.Attempts
	}
	if read.Meta.Lang != "" {
		headers["x-source-lang"] = read.Meta.Lang
	}
	return amqp.Publishing{
		Headers: headers, Body: raw, Type: cmp.Or(read.Job, read.Urn), CorrelationId: read.Trace,
		MessageId: read.Meta.ID, AppId: "babelqueue", ContentType: "application/json",
		ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent,
	}
}

// propertiesOf gives the properties that are set.
func propertiesOf(from amqp.Delivery) map[string]any {
	found := map[string]any{
		"content_type": from.ContentType, "content_encoding": from.ContentEncoding,
		"delivery_mode": from.DeliveryMode, "priority": from.Priority,
		"correlation_id": from.CorrelationId, "reply_to": from.ReplyTo, "type": from.Type,
		"expiration": from.Expiration, "message_id": from.MessageId, "user_id": from.UserId,
		"app_id": from.AppId,
	}
	for name, value := range found {
		if value == "" || value == uint8(0) {
			delete(found, name)
		}
	}
	return found
}

var integers = map[string]reflect.Type{
	"b": reflect.TypeFor[int8](), "B": reflect.TypeFor[uint8](), "s": reflect.TypeFor[int16](),
	"u": reflect.TypeFor[uint16](), "I": reflect.TypeFor[int32](), "i": reflect.TypeFor[uint32](),
	"l": reflect.TypeFor[int64](),
}

// tag gives the tagged form of a header value.
func tag(value any) []any {
	switch v := value.(type) {
	case bool:
		return []any{"t", v}
	case float32:
		return []any{"f", fmt.Sprintf("0x%08x", math.Float32bits(v))}
	case float64:
		return []any{"d", fmt.Sprintf("0x%016x", math.Float64bits(v))}
	case amqp.Decimal:
		return []any{"D", fmt.Sprint(v.Scale), fmt.Sprint(v.Value)}
	case string:
		if utf8.ValidString(v) {
			return []any{"S", v}
		}
		return []any{"x", hex.EncodeToString([]byte(v))}
	case []byte:
		return []any{"x", hex.EncodeToString(v)}
	case time.Time:
		return []any{"T", fmt.Sprint(v.Unix())}
	case []any:
		items := make([]any, len(v))
		for at, item := range v {
			items[at] = tag(item)
		}
		return []any{"A", items}
	case amqp.Table:
		return []any{"F", tagTable(v)}
	}
	for letter, kind := range integers {
		if reflect.TypeOf(value) == kind {
			return []any{letter, fmt.Sprint(value)}
		}
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

// untag gives the library's value for a tagged one.
func untag(tagged any) any {
	parts := tagged.([]any)
	if len(parts) == 1 {
		return nil
	}
	text, _ := parts[1].(string)
	letter := parts[0].(string)
	switch letter {
	case "t", "S":
		return parts[1]
	case "x":
		return must(hex.DecodeString(text))
	case "f":
		return math.Float32frombits(uint32(must(strconv.ParseUint(text, 0, 32))))
	case "d":
		return math.Float64frombits(must(strconv.ParseUint(text, 0, 64)))
	case "D":
		value := must(strconv.ParseInt(parts[2].(string), 10, 32))
		return amqp.Decimal{Scale: uint8(must(strconv.ParseUint(text, 10, 8))), Value: int32(value)}
	case "T":
		return time.Unix(must(strconv.ParseInt(text, 10, 64)), 0)
	case "A":
		items := []any{}
		for _, item := range parts[1].([]any) {
			items = append(items, untag(item))
		}
		return items
	case "F":
		return untagTable(parts[1].(map[string]any))
	}
	number := must(strconv.ParseInt(text, 10, 64))
	return reflect.ValueOf(number).Convert(integers[letter]).Interface()
}

func untagTable(tagged map[string]any) amqp.Table {
	out := amqp.Table{}
	for name, value := range tagged {
		out[name] = untag(value)
	}
	return out
}
