// The envelope: verdict, identity (`job`, or its alias `urn`), what is dropped with a warning,
// the consumer's five checks, and making a new message.
package main

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const asciiBlank = " \t\n\v\f\r"

var (
	forbiddenTop  = []string{"timestamp"}
	forbiddenMeta = []string{"max_retries", "attempts", "source", "ts"}
)

// decoded is a verdict; `members` is the envelope without alias and forbidden keys, when ok.
type decoded struct {
	verdict, reason, pointer string
	document                 *document
	members                  map[string]any
	warnings                 []any
}

func decode(body []byte) decoded {
	document, err := read(body, envelopeShape, 0)
	if err != nil {
		return decoded{verdict: "poison", reason: err.Error()}
	}
	if document.value == nil {
		return decoded{verdict: "no_identity", reason: "null has no identity"}
	}
	members, isObject := document.value.(map[string]any)
	if !isObject {
		return decoded{verdict: "poison", reason: "not a JSON object"}
	}
	if found := document.problem; found != nil {
		return decoded{verdict: "poison", reason: strings.TrimSpace(found.pointer + " " + found.reason), pointer: found.pointer}
	}
	warnings := []any{}
	job, hasJob := members["job"]
	urn, hasUrn := members["urn"]
	_, jobIsText := job.(string)
	switch {
	case isIdentity(job):
		if hasUrn {
			warnings = append(warnings, "/urn")
		}
	case isIdentity(urn):
		if hasJob && !jobIsText {
			warnings = append(warnings, "/job")
		}
		members["job"] = urn
	default:
		return decoded{verdict: "no_identity", reason: "neither `job` nor `urn` is a non-blank string"}
	}
	delete(members, "urn")
	warnings = append(warnings, drop(members, forbiddenTop, "/")...)
	if meta, isObject := members["meta"].(map[string]any); isObject {
		warnings = append(warnings, drop(meta, forbiddenMeta, "/meta/")...)
	}
	return decoded{verdict: "ok", document: document, members: members, warnings: warnings}
}

func drop(object map[string]any, keys []string, prefix string) (warnings []any) {
	for _, key := range keys {
		if _, here := object[key]; here {
			delete(object, key)
			warnings = append(warnings, prefix+key)
		}
	}
	return warnings
}

func isIdentity(value any) bool {
	text, isText := value.(string)
	return isText && strings.Trim(text, asciiBlank) != ""
}

func accepts(envelope map[string]any) bool {
	meta, _ := envelope["meta"].(map[string]any)
	version, _ := meta["schema_version"].(number)
	_, hasData := envelope["data"].(map[string]any)
	_, hasAttempts := envelope["attempts"].(number)
	return version.text == "1" && hasData && hasAttempts && isIdentity(envelope["trace_id"])
}

// partLevels says how many containers stand around each part of a new message.
var partLevels = map[string]int{"data": 1, "meta": 1, "extras_meta": 1, "extras_top": 0, "meta_entries": 0}

// makeEnvelope builds a new message, or says why it may not be written.
func makeEnvelope(given map[string]any) (map[string]any, *problem) {
	urn, _ := given["urn"].(string)
	if !isIdentity(urn) {
		return nil, &problem{"the URN is blank", "/job"}
	}
	queue, hasQueue := given["queue"].(string)
	if !hasQueue {
		queue = "default"
	}
	traceID, _ := given["trace_id"].(string)
	if !isIdentity(traceID) {
		traceID = newUUID()
	}
	parts := map[string]any{}
	for name, level := range partLevels {
		if given[name+"_base64"] == nil {
			continue
		}
		want := map[string]*shape{"data": data}[name]
		document, err := read(bytesOf(given, name+"_base64"), want, level)
		if err != nil {
			return nil, &problem{name + ": " + err.Error(), ""}
		}
		if overflows(document.value) || document.problem != nil {
			return nil, &problem{name + " holds a number beyond the range of a double", ""}
		}
		parts[name] = document.value
	}
	payload, isObject := parts["data"].(map[string]any)
	if !isObject {
		return nil, &problem{"`data` must be an object", "/data"}
	}
	meta := map[string]any{
		"id": newUUID(), "queue": queue, "lang": "go", "schema_version": integer("1"),
		"created_at": integer(strconv.FormatInt(time.Now().UnixMilli(), 10)),
	}
	envelope := map[string]any{
		"job": strings.Trim(urn, asciiBlank), "trace_id": strings.Trim(traceID, asciiBlank),
		"data": payload, "meta": meta, "attempts": integer("0"),
	}
	for _, entry := range slices.Concat(entriesOf(parts["meta"]), pairsOf(parts["meta_entries"]), entriesOf(parts["extras_meta"])) {
		if _, here := meta[entry.key]; here || slices.Contains(forbiddenMeta, entry.key) {
			return nil, &problem{"this key may not be written", "/meta/" + entry.key}
		}
		meta[entry.key] = entry.value
	}
	reserved := slices.Concat(envelopeOrder, forbiddenTop, []string{"urn"})
	for _, entry := range entriesOf(parts["extras_top"]) {
		if slices.Contains(reserved, entry.key) {
			return nil, &problem{"this key may not be written", "/" + entry.key}
		}
		envelope[entry.key] = entry.value
	}
	return envelope, nil
}

type entry struct {
	key   string
	value any
}

func entriesOf(value any) (entries []entry) {
	object, _ := value.(map[string]any)
	for key, value := range object {
		entries = append(entries, entry{key, value})
	}
	return entries
}

func pairsOf(value any) (entries []entry) {
	pairs, _ := value.([]any)
	for _, pair := range pairs {
		both := pair.([]any)
		entries = append(entries, entry{both[0].(string), both[1]})
	}
	return entries
}

func integer(text string) number { return number{text, true, true} }

func newUUID() string {
	var bits [16]byte
	if _, err := rand.Read(bits[:]); err != nil {
		panic(err)
	}
	bits[6], bits[8] = bits[6]&0x0F|0x40, bits[8]&0x3F|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", bits[:4], bits[4:6], bits[6:8], bits[8:10], bits[10:])
}
