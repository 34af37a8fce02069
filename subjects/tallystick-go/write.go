// Writing: the canonical bytes. Fixed member order of the envelope, meta and dead_letter, then
// RFC 8785 (UTF-16 key order, ECMAScript numbers, minimal escapes); integers exact at any size.
package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

var (
	envelopeOrder   = []string{"job", "trace_id", "data", "meta", "attempts", "dead_letter"}
	metaOrder       = []string{"id", "queue", "lang", "schema_version", "created_at"}
	deadLetterOrder = []string{"reason", "error", "exception", "failed_at", "original_queue", "attempts", "lang"}
	memberOrders    = map[string][]string{"meta": metaOrder, "dead_letter": deadLetterOrder}
)

// canonicalEnvelope writes an envelope; canonicalValue writes any other value.
func canonicalEnvelope(envelope map[string]any) []byte {
	var out strings.Builder
	writeObject(&out, envelope, envelopeOrder, memberOrders)
	return []byte(out.String())
}

func canonicalDeadLetter(block map[string]any) string {
	var out strings.Builder
	writeObject(&out, block, deadLetterOrder, nil)
	return out.String()
}

func canonicalValue(value any) []byte {
	var out strings.Builder
	writeValue(&out, value)
	return []byte(out.String())
}

// overflows tells whether a value holds a number with a fraction or exponent beyond any double.
func overflows(value any) bool {
	switch value := value.(type) {
	case number:
		return !value.finite && !value.integer
	case []any:
		return slices.ContainsFunc(value, overflows)
	case map[string]any:
		for _, member := range value {
			if overflows(member) {
				return true
			}
		}
	}
	return false
}

func writeObject(out *strings.Builder, object map[string]any, first []string, orders map[string][]string) {
	keys := make([]string, 0, len(object))
	for _, key := range first {
		if _, here := object[key]; here {
			keys = append(keys, key)
		}
	}
	known := len(keys)
	for key := range object {
		if !slices.Contains(first, key) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys[known:], func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	out.WriteByte('{')
	for index, key := range keys {
		if index > 0 {
			out.WriteByte(',')
		}
		writeString(out, key)
		out.WriteByte(':')
		inner, isObject := object[key].(map[string]any)
		if order, here := orders[key]; here && isObject {
			writeObject(out, inner, order, nil)
		} else {
			writeValue(out, object[key])
		}
	}
	out.WriteByte('}')
}

func writeValue(out *strings.Builder, value any) {
	switch value := value.(type) {
	case nil:
		out.WriteString("null")
	case bool:
		out.WriteString(strconv.FormatBool(value))
	case number:
		out.WriteString(value.text)
	case string:
		writeString(out, value)
	case map[string]any:
		writeObject(out, value, nil, nil)
	case []any:
		out.WriteByte('[')
		for index, item := range value {
			if index > 0 {
				out.WriteByte(',')
			}
			writeValue(out, item)
		}
		out.WriteByte(']')
	default:
		panic(fmt.Sprintf("not a JSON value: %T", value))
	}
}

var shortEscapes = map[byte]string{
	'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`,
}

func writeString(out *strings.Builder, text string) {
	out.WriteByte('"')
	for index := 0; index < len(text); index++ {
		if short, here := shortEscapes[text[index]]; here {
			out.WriteString(short)
		} else if text[index] < 0x20 {
			fmt.Fprintf(out, `\u%04x`, text[index])
		} else {
			out.WriteByte(text[index])
		}
	}
	out.WriteByte('"')
}

// numberText is ECMAScript's Number::toString.
func numberText(double float64) string {
	size := math.Abs(double)
	if size == 0 {
		return "0"
	}
	if size >= 1e-6 && size < 1e21 {
		return strconv.FormatFloat(double, 'f', -1, 64)
	}
	return strings.Replace(strconv.FormatFloat(double, 'e', -1, 64), "e-0", "e-", 1)
}
