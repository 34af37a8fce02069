// Reading: exactly one strict RFC 8259 text in valid UTF-8, no lone surrogate escape, at most
// 1000 levels deep; the last duplicate wins; numbers keep their canonical text; the byte spans of
// the top-level members are kept for splicing. encoding/json judges the grammar and gives tokens.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxDepth = 1000

// number is a JSON number: its canonical text (the literal itself when no double can hold it).
type number struct {
	text            string
	integer, finite bool
}

// member is where one top-level member stands: [start, end) with its value from `value` on.
type member struct {
	key               string
	start, value, end int
}

type problem struct{ reason, pointer string }

// document is what was read; `problem` is the first known member of a wrong type.
type document struct {
	value   any
	members []member
	problem *problem
}

// shape is what the contract asks of an object's members (facts 2.7), at every occurrence.
type shape struct {
	pointer string
	types   map[string]string
	inside  map[string]*shape
	data    bool
}

var data = &shape{data: true}

var envelopeShape = &shape{
	types: map[string]string{
		"trace_id": "string", "attempts": "integer", "data": "object", "meta": "object", "dead_letter": "object",
	},
	inside: map[string]*shape{
		"data": data,
		"meta": {pointer: "/meta", types: map[string]string{
			"id": "string", "queue": "string", "lang": "string", "schema_version": "integer", "created_at": "integer",
		}},
		"dead_letter": {pointer: "/dead_letter", types: map[string]string{
			"reason": "string", "error": "string", "exception": "string", "original_queue": "string",
			"lang": "string", "failed_at": "integer", "attempts": "integer",
		}},
	},
}

type reader struct {
	body    []byte
	decoder *json.Decoder
	found   document
}

// read parses one text; `want` is nil where no envelope is expected. `level` is how many
// containers already surround the text.
func read(body []byte, want *shape, level int) (*document, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("not valid UTF-8")
	}
	if !json.Valid(body) {
		return nil, errors.New("not exactly one strict JSON value")
	}
	r := &reader{body: body, decoder: json.NewDecoder(bytes.NewReader(body))}
	r.decoder.UseNumber()
	value, err := r.value(want, level)
	r.found.value = value
	return &r.found, err
}

func (r *reader) value(want *shape, depth int) (any, error) {
	start := r.next()
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, errors.New("nested deeper than 1000 levels")
		}
		if token == '{' {
			return r.object(want, depth+1)
		}
		if want != data {
			want = nil
		}
		return r.array(want, depth+1)
	case string:
		return token, checkSurrogates(r.body[start:r.decoder.InputOffset()])
	case json.Number:
		return r.number(string(token), want == data), nil
	}
	return token, nil
}

func (r *reader) object(want *shape, depth int) (any, error) {
	object := map[string]any{}
	for r.decoder.More() {
		start := r.next()
		token, err := r.decoder.Token()
		if err != nil {
			return nil, err
		}
		key := token.(string)
		if err := checkSurrogates(r.body[start:r.decoder.InputOffset()]); err != nil {
			return nil, err
		}
		var inner *shape
		if want == data {
			inner = data
		} else if want != nil {
			inner = want.inside[key]
		}
		from := r.next()
		value, err := r.value(inner, depth)
		if err != nil {
			return nil, err
		}
		object[key] = value
		if depth == 1 {
			r.found.members = append(r.found.members, member{key, start, from, int(r.decoder.InputOffset())})
		}
		if want != nil && !isOf(want.types[key], value) {
			r.complain("must be "+want.types[key]+" or null", want.pointer+"/"+key)
		}
	}
	_, err := r.decoder.Token()
	return object, err
}

func (r *reader) array(want *shape, depth int) (any, error) {
	array := []any{}
	for r.decoder.More() {
		value, err := r.value(want, depth)
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	_, err := r.decoder.Token()
	return array, err
}

func (r *reader) number(literal string, inData bool) number {
	double, _ := strconv.ParseFloat(literal, 64)
	finite := !math.IsInf(double, 0)
	integer := !strings.ContainsAny(literal, ".eE")
	if !finite && inData {
		r.complain("a number inside data is beyond the range of a double", "")
	}
	text := literal
	if literal == "-0" {
		text = "0"
	} else if finite && !integer {
		text = numberText(double)
	}
	return number{text, integer, finite}
}

func (r *reader) complain(reason, pointer string) {
	if r.found.problem == nil {
		r.found.problem = &problem{reason, pointer}
	}
}

// next gives where the next token starts: past white space, commas and colons.
func (r *reader) next() int {
	at := int(r.decoder.InputOffset())
	for at < len(r.body) && strings.IndexByte(" \t\r\n,:", r.body[at]) >= 0 {
		at++
	}
	return at
}

func isOf(want string, value any) bool {
	if value == nil || want == "" {
		return true
	}
	switch value := value.(type) {
	case string:
		return want == "string"
	case map[string]any:
		return want == "object"
	case number:
		_, err := strconv.ParseInt(value.text, 10, 64)
		return want == "integer" && value.integer && err == nil
	}
	return false
}

// checkSurrogates looks at the source text of a string, for encoding/json would put U+FFFD there.
func checkSurrogates(source []byte) error {
	unit := func(at int) uint64 {
		if at+6 > len(source) || source[at] != '\\' || source[at+1] != 'u' {
			return 0
		}
		code, _ := strconv.ParseUint(string(source[at+2:at+6]), 16, 16)
		return code
	}
	for at := 0; at < len(source); at++ {
		if source[at] != '\\' {
			continue
		}
		high := unit(at)
		if high>>10 == 0xD800>>10 && unit(at+6)>>10 == 0xDC00>>10 {
			at += 11
		} else if high>>11 == 0xD800>>11 {
			return errors.New("a lone surrogate escape")
		} else {
			at++
		}
	}
	return nil
}
