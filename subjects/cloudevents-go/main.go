// The Go module cloudevents/sdk-go as a subject: JSON events and batches, and Protobuf events.
// Unmarshalling does not validate, so Validate is asked too, as the SDK's own client does.
// An error that the SDK returns is a rejection; a panic is an error.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	protobuf "github.com/cloudevents/sdk-go/binding/format/protobuf/v2"
	"github.com/cloudevents/sdk-go/v2/binding/format"
	"github.com/cloudevents/sdk-go/v2/event"
)

const module = "github.com/cloudevents/sdk-go/v2"

type given struct {
	Format      string    `json:"format"`
	Kind        string    `json:"kind"`
	Body        string    `json:"body_base64"`
	Extensions  bool      `json:"extensions"`
	Constraints bool      `json:"constraints"`
	Event       *neutral  `json:"event"`
	Events      []neutral `json:"events"`
}

type request struct {
	Op        string `json:"op"`
	ID        int    `json:"id"`
	Operation string `json:"operation"`
	Given     given  `json:"given"`
}

type object = map[string]any

// unsupported is a declaration: what the SDK does not offer, and why.
type unsupported string

func (reason unsupported) Error() string { return string(reason) }

var formats = map[string]format.Format{"json": format.JSON, "protobuf": protobuf.Protobuf}

func find(asked given, batch bool) (format.Format, error) {
	found, known := formats[asked.Format]
	if !known {
		return nil, unsupported("sdk-go has no " + asked.Format + " format")
	}
	if asked.Extensions || asked.Constraints {
		return nil, unsupported("sdk-go cannot declare the types of extensions")
	}
	if batch && asked.Format != "json" {
		return nil, unsupported("sdk-go has no batches in " + asked.Format)
	}
	return found, nil
}

func read(asked given) (object, error) {
	batch := asked.Kind == "batch"
	found, err := find(asked, batch)
	if err != nil {
		return nil, err
	}
	body, err := base64.StdEncoding.DecodeString(asked.Body)
	if err != nil {
		return nil, err
	}
	if !batch {
		var one event.Event
		if err := found.Unmarshal(body, &one); err != nil {
			return nil, err
		}
		if err := one.Validate(); err != nil {
			return nil, err
		}
		return object{"event": show(one, asked.Format)}, nil
	}
	var events []event.Event
	if err := json.Unmarshal(body, &events); err != nil {
		return nil, err
	}
	shown := []object{}
	for _, one := range events {
		if err := one.Validate(); err != nil {
			return nil, err
		}
		shown = append(shown, show(one, asked.Format))
	}
	return object{"events": shown}, nil
}

func write(asked given) (object, error) {
	found, err := find(asked, asked.Events != nil)
	if err != nil {
		return nil, err
	}
	var body []byte
	if asked.Event != nil {
		one, err := build(*asked.Event)
		if err != nil {
			return nil, err
		}
		body, err = found.Marshal(&one)
		if err != nil {
			return nil, err
		}
	} else {
		events := []event.Event{}
		for _, shown := range asked.Events {
			one, err := build(shown)
			if err != nil {
				return nil, err
			}
			events = append(events, one)
		}
		if body, err = json.Marshal(events); err != nil {
			return nil, err
		}
	}
	return object{"bytes_base64": base64.StdEncoding.EncodeToString(body)}, nil
}

var operations = map[string]func(given) (object, error){"ce_read": read, "ce_write": write}

func answer(asked request) (reply object) {
	reply = object{"id": asked.ID}
	defer func() {
		if broken := recover(); broken != nil {
			reply = object{"id": asked.ID, "error": fmt.Sprintf("panic: %v", broken)}
		}
	}()
	operation, known := operations[asked.Operation]
	if !known {
		reply["unsupported"] = "no operation " + asked.Operation
		return reply
	}
	result, err := operation(asked.Given)
	var declared unsupported
	switch {
	case errors.As(err, &declared):
		reply["unsupported"] = declared.Error()
	case err != nil:
		reply["result"] = object{"rejected": fmt.Sprintf("%T: %v", err, err)}
	default:
		reply["result"] = result
	}
	return reply
}

func version() string {
	if info, known := debug.ReadBuildInfo(); known {
		for _, used := range info.Deps {
			if used.Path == module {
				return used.Version
			}
		}
	}
	return "unknown"
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<16)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		var reply object
		switch asked.Op {
		case "stop":
			return
		case "run":
			reply = answer(asked)
		default:
			reply = object{
				"protocol": 1, "name": "cloudevents-go", "version": version(), "language": "go",
				"library": "json-iterator, protobuf", "operations": []string{"ce_read", "ce_write"},
			}
		}
		if err := output.Encode(reply); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
