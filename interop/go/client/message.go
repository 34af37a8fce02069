// Messages: seeded bodies, envelopes, properties, and header values as tagged JSON.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
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
	for at := range max(len(one), len(other)) {
		if at >= len(one) || at >= len(other) || one[at] != other[at] {
			return at
		}
	}
	return -1
}

// project carries an envelope as the RabbitMQ binding says: the body is not touched, what is absent,
// null or empty stays absent.
func project(raw []byte) amqp.Publishing {
	var read struct {
		Job      any
		Urn      string
		TraceID  string `json:"trace_id"`
		Attempts *int32
		Meta     struct {
			ID, Lang string
			Version  *int32 `json:"schema_version"`
		}
	}
	check(json.Unmarshal(raw, &read))
	name, _ := read.Job.(string)
	if strings.Trim(name, " \t\n\v\f\r") == "" {
		name = read.Urn
	}
	headers := amqp.Table{"x-source-lang": read.Meta.Lang}
	for name, count := range map[string]*int32{"x-schema-version": read.Meta.Version, "x-attempts": read.Attempts} {
		if count != nil {
			headers[name] = *count
		}
	}
	maps.DeleteFunc(headers, func(_ string, value any) bool { return value == "" })
	return amqp.Publishing{
		Headers: headers, Body: raw, Type: name, MessageId: read.Meta.ID, CorrelationId: read.TraceID,
		AppId: "babelqueue", ContentType: "application/json", ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent,
	}
}

// propertiesOf gives the properties that are set.
func propertiesOf(from amqp.Delivery) object {
	found := object{
		"content_type": from.ContentType, "content_encoding": from.ContentEncoding, "type": from.Type,
		"delivery_mode": from.DeliveryMode, "priority": from.Priority, "correlation_id": from.CorrelationId,
		"reply_to": from.ReplyTo, "expiration": from.Expiration, "message_id": from.MessageId,
		"user_id": from.UserId, "app_id": from.AppId,
	}
	maps.DeleteFunc(found, func(_ string, value any) bool { return value == "" || value == uint8(0) })
	return found
}

// integers has a value of each type of whole number, by its tag.
var integers = map[string]any{
	"b": int8(0), "B": uint8(0), "s": int16(0), "u": uint16(0), "I": int32(0), "i": uint32(0), "l": int64(0),
}

// tag gives the tagged form of a header value.
func tag(value any) any {
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
		return tag([]byte(v))
	case []byte:
		return []any{"x", fmt.Sprintf("%x", v)}
	case time.Time:
		return []any{"T", fmt.Sprint(v.Unix())}
	case []any:
		return []any{"A", each(v, tag)}
	case amqp.Table:
		return []any{"F", eachOf(v, tag)}
	}
	for letter, kind := range integers {
		if reflect.TypeOf(value) == reflect.TypeOf(kind) {
			return []any{letter, fmt.Sprint(value)}
		}
	}
	return []any{"V"}
}

func scan[T any](text any) (value T) {
	must(fmt.Sscan(text.(string), &value))
	return value
}

// untag gives the library's value for a tagged one.
func untag(tagged any) any {
	parts := tagged.([]any)
	switch parts[0] {
	case "V":
		return nil
	case "x":
		return must(hex.DecodeString(parts[1].(string)))
	case "f":
		return math.Float32frombits(scan[uint32](parts[1]))
	case "d":
		return math.Float64frombits(scan[uint64](parts[1]))
	case "D":
		return amqp.Decimal{Scale: scan[uint8](parts[1]), Value: scan[int32](parts[2])}
	case "T":
		return time.Unix(scan[int64](parts[1]), 0)
	case "A":
		return each(parts[1].([]any), untag)
	case "F":
		return amqp.Table(eachOf(parts[1].(object), untag))
	case "t", "S":
		return parts[1]
	}
	kind := reflect.TypeOf(integers[parts[0].(string)])
	return reflect.ValueOf(scan[int64](parts[1])).Convert(kind).Interface()
}

func each(items []any, change func(any) any) []any {
	out := make([]any, len(items))
	for at, item := range items {
		out[at] = change(item)
	}
	return out
}

func eachOf(table object, change func(any) any) object {
	out := object{}
	for name, value := range table {
		out[name] = change(value)
	}
	return out
}
