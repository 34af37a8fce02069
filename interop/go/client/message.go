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
	"strconv"
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
	read := object{}
	check(json.Unmarshal(raw, &read))
	meta, _ := read["meta"].(object)
	text := func(value any) string {
		found, _ := value.(string)
		return found
	}
	name := text(read["job"])
	if strings.Trim(name, " \t\n\v\f\r") == "" {
		name = text(read["urn"])
	}
	headers := amqp.Table{"x-source-lang": text(meta["lang"])}
	counts := object{"x-schema-version": meta["schema_version"], "x-attempts": read["attempts"]}
	for name, value := range counts {
		if number, is := value.(float64); is {
			headers[name] = int32(must(strconv.ParseInt(strconv.FormatFloat(number, 'f', -1, 64), 10, 32)))
		}
	}
	maps.DeleteFunc(headers, func(_ string, value any) bool { return value == "" })
	return amqp.Publishing{
		Headers: headers, Body: raw, Type: name, MessageId: text(meta["id"]),
		CorrelationId: text(read["trace_id"]), AppId: "babelqueue", ContentType: "application/json",
		ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent,
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

// integers are the tags of whole numbers; each type is read and written with its own.
var integers = map[string]reflect.Type{
	"b": reflect.TypeFor[int8](), "B": reflect.TypeFor[uint8](), "s": reflect.TypeFor[int16](),
	"u": reflect.TypeFor[uint16](), "I": reflect.TypeFor[int32](), "i": reflect.TypeFor[uint32](),
	"l": reflect.TypeFor[int64](),
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
		return []any{"x", hex.EncodeToString(v)}
	case time.Time:
		return []any{"T", fmt.Sprint(v.Unix())}
	case []any:
		return []any{"A", each(v, tag)}
	case amqp.Table:
		return []any{"F", eachOf(v, tag)}
	}
	for letter, kind := range integers {
		if reflect.TypeOf(value) == kind {
			return []any{letter, fmt.Sprint(value)}
		}
	}
	return []any{"V"}
}

// untag gives the library's value for a tagged one.
func untag(tagged any) any {
	parts := append(tagged.([]any), "") // a void has no second part
	text, _ := parts[1].(string)
	switch letter := parts[0].(string); letter {
	case "V":
		return nil
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
		return each(parts[1].([]any), untag)
	case "F":
		return amqp.Table(eachOf(parts[1].(object), untag))
	case "t", "S":
		return parts[1]
	default:
		return reflect.ValueOf(must(strconv.ParseInt(text, 10, 64))).Convert(integers[letter]).Interface()
	}
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
