// The neutral form of an event (docs/reference/events-protocol.md) and the SDK's own.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

type neutral struct {
	SpecVersion     *string                               `json:"specversion"`
	ID              *string                               `json:"id"`
	Source          *string                               `json:"source"`
	Type            *string                               `json:"type"`
	DataContentType *string                               `json:"datacontenttype"`
	DataSchema      *string                               `json:"dataschema"`
	Subject         *string                               `json:"subject"`
	Time            *string                               `json:"time"`
	Extensions      map[string]map[string]json.RawMessage `json:"extensions"`
	Data            map[string]json.RawMessage            `json:"data"`
}

func show(one event.Event, format string) object {
	shown := object{}
	for name, value := range map[string]string{
		"specversion": one.SpecVersion(), "id": one.ID(), "source": one.Source(),
		"type": one.Type(), "datacontenttype": one.DataContentType(),
		"dataschema": one.DataSchema(), "subject": one.Subject(),
	} {
		if value != "" {
			shown[name] = value
		}
	}
	if !one.Time().IsZero() {
		shown["time"] = one.Time().Format(time.RFC3339Nano)
	}
	if extensions := one.Extensions(); len(extensions) > 0 {
		typed := object{}
		for name, value := range extensions {
			typed[name] = showValue(value)
		}
		shown["extensions"] = typed
	}
	if one.Data() != nil {
		shown["data"] = showData(one, format)
	}
	return shown
}

func showValue(value any) object {
	switch value := value.(type) {
	case bool:
		return object{"Boolean": value}
	case int32:
		return object{"Integer": value}
	case string:
		return object{"String": value}
	case []byte:
		return object{"Binary": base64.StdEncoding.EncodeToString(value)}
	case types.URI:
		return object{"URI": value.String()}
	case types.URIRef:
		return object{"URI-reference": value.String()}
	case types.Timestamp:
		return object{"Timestamp": value.Format(time.RFC3339Nano)}
	}
	return object{fmt.Sprintf("%T", value): value}
}

// The SDK holds data as octets; what JSON said of them is kept in a flag.
func showData(one event.Event, format string) object {
	if one.DataBase64 || format != "json" {
		return object{"base64": base64.StdEncoding.EncodeToString(one.Data())}
	}
	if isJSON(one.DataContentType()) {
		return object{"json": json.RawMessage(one.Data())}
	}
	return object{"text": string(one.Data())}
}

func mediaType(contentType string) string {
	essence, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(essence))
}

func isJSON(contentType string) bool {
	media := mediaType(contentType)
	return media == "" || strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}

func build(shown neutral) (event.Event, error) {
	one := event.New()
	for _, member := range []struct {
		value *string
		set   func(string)
	}{
		{shown.SpecVersion, one.SetSpecVersion}, {shown.ID, one.SetID},
		{shown.Source, one.SetSource}, {shown.Type, one.SetType},
		{shown.DataContentType, one.SetDataContentType}, {shown.DataSchema, one.SetDataSchema},
		{shown.Subject, one.SetSubject},
	} {
		if member.value != nil {
			member.set(*member.value)
		}
	}
	if shown.Time != nil {
		moment, err := types.ParseTime(*shown.Time)
		if err != nil {
			return one, err
		}
		one.SetTime(moment)
	}
	for name, typed := range shown.Extensions {
		for kind, raw := range typed {
			value, err := readValue(kind, raw)
			if err != nil {
				return one, err
			}
			one.SetExtension(name, value)
		}
	}
	for kind, raw := range shown.Data {
		if err := setData(&one, kind, raw); err != nil {
			return one, err
		}
	}
	return one, one.Validate()
}

func readValue(kind string, raw json.RawMessage) (any, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	text, _ := value.(string)
	switch kind {
	case "Binary":
		return types.ParseBinary(text)
	case "URI":
		if parsed := types.ParseURI(text); parsed != nil {
			return *parsed, nil
		}
		return nil, fmt.Errorf("cannot parse uri: %v", text)
	case "URI-reference":
		if parsed := types.ParseURIRef(text); parsed != nil {
			return *parsed, nil
		}
		return nil, fmt.Errorf("cannot parse uri ref: %v", text)
	case "Timestamp":
		return types.ParseTime(text)
	}
	return value, nil
}

// Octets are set as octets. Text goes through the SDK's codec for text/plain; under any other
// content type its codecs would encode it once more, so text is octets there too.
func setData(one *event.Event, kind string, raw json.RawMessage) error {
	if kind == "json" {
		return one.SetData(one.DataContentType(), raw)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	if kind == "base64" {
		octets, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return err
		}
		return one.SetData(one.DataContentType(), octets)
	}
	if mediaType(one.DataContentType()) == "text/plain" {
		return one.SetData(one.DataContentType(), text)
	}
	return one.SetData(one.DataContentType(), []byte(text))
}
