// The Go subject: it speaks the stdio protocol (docs/reference/protocol.md), one JSON object per
// line. It reports what it does and never judges.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
)

type object = map[string]any

var operations = map[string]func(body []byte, given object) object{
	"canonical": func(body []byte, _ object) object {
		bytes, result := written(body, nil)
		if bytes != nil && !accepts(decode(body).members) {
			return rejected("a consumer does not accept this envelope", "")
		}
		delete(result, "warnings")
		return result
	},
	"reencode": func(body []byte, given object) object {
		bytes, result := written(body, given["attempts"])
		if letter, here := given["dead_letter"].(object); here && bytes != nil {
			block := deadLetterBlock(letter, letter["reason"], given["attempts"])
			result["bytes_base64"] = encode(deadLetter(bytes, block, given["attempts"].(number).text))
		}
		return result
	},
	"decode": decodeResult,
	"make": func(_ []byte, given object) object {
		envelope, refused := makeEnvelope(given)
		if refused != nil {
			return rejected(refused.reason, refused.pointer)
		}
		return bytesResult(canonicalEnvelope(envelope))
	},
	"retry": func(body []byte, given object) object {
		return spliceResult(body, func() []byte { return spliceAttempts(body, spans(body), given["attempts"].(number).text) })
	},
	"redrive": func(body []byte, _ object) object {
		return spliceResult(body, func() []byte { return redrive(body) })
	},
	"dead_letter": func(body []byte, given object) object {
		block := deadLetterBlock(given, given["reason"], given["attempts"])
		return spliceResult(body, func() []byte { return deadLetter(body, block, given["attempts"].(number).text) })
	},
	"poison_record": func(body []byte, given object) object {
		return bytesResult(poisonRecord(body, deadLetterBlock(given, "poison", integer("0"))))
	},
}

func decodeResult(body []byte, _ object) object {
	found := decode(body)
	if found.verdict != "ok" {
		return object{"verdict": found.verdict, "reason": found.reason}
	}
	meta, _ := found.members["meta"].(object)
	result := object{
		"verdict": "ok", "reason": "", "accepted": accepts(found.members), "urn": found.members["job"],
		"attempts": found.members["attempts"], "lang": meta["lang"], "schema_version": meta["schema_version"],
		"warnings": found.warnings,
	}
	if value, here := found.members["data"]; here {
		result["data_base64"] = encode(canonicalValue(value))
	}
	if value, here := found.members["dead_letter"]; here {
		result["dead_letter_base64"] = encode(canonicalValue(value))
	}
	return result
}

// written gives the canonical bytes, with a new count if there is one; nil when rejected.
func written(body []byte, attempts any) ([]byte, object) {
	found := decode(body)
	if found.verdict != "ok" {
		return nil, rejected(found.verdict+": "+found.reason, found.pointer)
	}
	if attempts != nil {
		found.members["attempts"] = attempts
	}
	if overflows(found.members) {
		return nil, rejected("a number is beyond the range of a double", "")
	}
	bytes := canonicalEnvelope(found.members)
	return bytes, object{"bytes_base64": encode(bytes), "warnings": found.warnings}
}

func spliceResult(body []byte, splice func() []byte) object {
	found := decode(body)
	if found.verdict != "ok" {
		return rejected(found.verdict+": "+found.reason, found.pointer)
	}
	return bytesResult(splice())
}

func deadLetterBlock(given object, reason, attempts any) object {
	block := object{
		"reason": reason, "error": given["error"], "exception": given["exception"], "failed_at": given["failed_at"],
		"original_queue": given["original_queue"], "attempts": attempts, "lang": given["lang"],
	}
	if block["failed_at"] == nil {
		block["failed_at"] = integer("0")
	}
	if block["lang"] == nil {
		block["lang"] = "go"
	}
	return block
}

func bytesResult(bytes []byte) object { return object{"bytes_base64": encode(bytes)} }

func rejected(reason, pointer string) object {
	if pointer == "" {
		return object{"rejected": reason}
	}
	return object{"rejected": reason, "pointer": pointer}
}

func encode(bytes []byte) string { return base64.StdEncoding.EncodeToString(bytes) }

func bytesOf(given object, name string) []byte {
	text, _ := given[name].(string)
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return bytes
}

func run(request object) (answer object) {
	answer = object{"id": request["id"]}
	defer func() {
		if broken := recover(); broken != nil {
			answer["error"] = fmt.Sprint(broken)
		}
	}()
	name, _ := request["operation"].(string)
	operation, here := operations[name]
	if !here {
		answer["unsupported"] = "this subject does not offer `" + name + "`"
		return answer
	}
	given := request["given"].(object)
	answer["result"] = operation(bytesOf(given, "body_base64"), given)
	return answer
}

func start() object {
	names := []any{}
	for name := range operations {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b any) int { return slices.Compare([]byte(a.(string)), []byte(b.(string))) })
	return object{
		"protocol": integer("1"), "name": "tallystick-go", "version": runtime.Version(), "language": "go",
		"library": "encoding/json (grammar and tokens), canonical rules on top", "operations": names,
	}
}

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return
		}
		document, broken := read(line, nil, 0)
		if broken != nil {
			fmt.Fprintln(os.Stderr, "subject go: not a request:", broken)
			os.Exit(1)
		}
		request := document.value.(object)
		answer := start()
		switch request["op"] {
		case "stop":
			return
		case "run":
			answer = run(request)
		}
		out.Write(append(canonicalValue(answer), '\n'))
		out.Flush()
	}
}
