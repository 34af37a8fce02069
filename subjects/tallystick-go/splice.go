// Splicing: bytes are sacred. A retry, a redrive and a dead letter change the members they must
// and leave every other byte as it came; what is not an object travels inside a wrapper.
package main

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"
)

// spliceAttempts puts a new count in place of the last top-level `attempts`, or adds one.
func spliceAttempts(body []byte, members []member, attempts string) []byte {
	for index := len(members) - 1; index >= 0; index-- {
		if at := members[index]; at.key == "attempts" {
			return replace(body, at.value, at.end, attempts)
		}
	}
	return addMember(body, `"attempts":`+attempts, len(members) > 0)
}

// withoutDeadLetter cuts every top-level `dead_letter` with one comma: from the comma before it, or
// up to the next member when nothing that stays stands before.
func withoutDeadLetter(body []byte, members []member) []byte {
	out := make([]byte, 0, len(body))
	from, kept := 0, false
	for index, at := range members {
		if at.key != "dead_letter" {
			kept = true
			continue
		}
		start, end := at.start, at.end
		if kept {
			before := members[index-1].end
			start = before + bytes.IndexByte(body[before:], ',')
		} else if index+1 < len(members) {
			end = members[index+1].start
		}
		out = append(out, body[from:start]...)
		from = end
	}
	return append(out, body[from:]...)
}

func addMember(body []byte, text string, comma bool) []byte {
	end := bytes.LastIndexByte(body, '}')
	if comma {
		text = "," + text
	}
	return replace(body, end, end, text)
}

func replace(body []byte, start, end int, text string) []byte {
	out := append(make([]byte, 0, len(body)+len(text)), body[:start]...)
	return append(append(out, text...), body[end:]...)
}

// spans reads again where the members of an object stand; the body was read before.
func spans(body []byte) []member {
	document, err := read(body, nil, 0)
	if err != nil {
		panic(err)
	}
	return document.members
}

func redrive(body []byte) []byte {
	bare := withoutDeadLetter(body, spans(body))
	return spliceAttempts(bare, spans(bare), "0")
}

func deadLetter(body []byte, block map[string]any, attempts string) []byte {
	bare := bytes.Trim(withoutDeadLetter(body, spans(body)), " \t\r\n")
	counted := spliceAttempts(bare, spans(bare), attempts)
	return addMember(counted, `"dead_letter":`+canonicalDeadLetter(block), true)
}

func poisonRecord(body []byte, block map[string]any) []byte {
	text := `"dead_letter":` + canonicalDeadLetter(block)
	document, err := read(body, nil, 0)
	if err == nil {
		if object, isObject := document.value.(map[string]any); isObject {
			if _, here := object["dead_letter"]; !here {
				return addMember(bytes.Trim(body, " \t\r\n"), text, len(object) > 0)
			}
		}
	}
	if utf8.Valid(body) {
		return []byte(`{"raw":` + string(canonicalValue(string(body))) + "," + text + "}")
	}
	return []byte(`{"raw":"` + base64.StdEncoding.EncodeToString(body) + `","raw_encoding":"base64",` + text + "}")
}
