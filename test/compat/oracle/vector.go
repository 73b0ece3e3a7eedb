package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// Case is one step on one state, to be recorded.
type Case struct {
	// Does says in words what happens. It is unique within its operation.
	Does string
	// Before is the state, with times that count from the moment of the step.
	Before State
	// Step is the step.
	Step Step
	// Meant names the divergences that are to be seen, where they apply.
	Meant []string
	// Of, where set, tells for which releases it makes sense.
	Of func(Release) bool
}

// Vector is what a live Redisson did with a case. Times count from the moment of
// the call: nothing else in it depends on when it was recorded.
type Vector struct {
	// Operation is the operation's name.
	Operation string `json:"operation"`
	// Does is the case's.
	Does string `json:"does"`
	// Redisson has the releases that did exactly this.
	Redisson []string `json:"redisson"`
	// Step is what the caller wanted.
	Step Step `json:"step"`
	// Calls is what Redisson's script was called with; for more than one name old
	// releases call it once for each.
	Calls []Args `json:"calls"`
	// Before has all keys there were, After all there are then.
	Before State `json:"before"`
	Reply  Reply `json:"reply"`
	After  State `json:"after"`
	// Messages has what was published, in order: "channel payload".
	Messages []string `json:"messages"`
	// Diverges names the differences of ours that are meant, where they apply.
	Diverges []string `json:"diverges"`
}

// sameAs tells whether two vectors differ in their releases at most.
func (v Vector) sameAs(other Vector) bool {
	v.Redisson, other.Redisson = nil, nil
	return reflect.DeepEqual(v, other)
}

// line writes a vector with a line for each part, so that changes can be read.
func (v Vector) line() ([]byte, error) {
	parts := []struct {
		name  string
		value any
	}{
		{"operation", v.Operation}, {"does", v.Does}, {"redisson", v.Redisson},
		{"step", v.Step}, {"calls", v.Calls}, {"before", v.Before},
		{"reply", v.Reply}, {"after", v.After}, {"messages", v.Messages},
		{"diverges", v.Diverges},
	}
	var lines [][]byte
	for _, part := range parts {
		value, err := json.Marshal(part.value)
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Appendf(nil, "%q: %s", part.name, value))
	}
	return fmt.Appendf(nil, "{%s}", bytes.Join(lines, []byte(",\n "))), nil
}

// Reply is a script's reply.
type Reply struct {
	// Value is nil, a number, a text, a list of them or a Failure.
	Value any
}

// MarshalJSON writes a failure as an object.
func (r Reply) MarshalJSON() ([]byte, error) { return json.Marshal(encoded(r.Value)) }

func encoded(value any) any {
	switch v := value.(type) {
	case Failure:
		return map[string]string{"error": string(v)}
	case []any:
		list := []any{}
		for _, item := range v {
			list = append(list, encoded(item))
		}
		return list
	}
	return value
}

// UnmarshalJSON is the reverse.
func (r *Reply) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	err := d.Decode(&value)
	if err == nil {
		r.Value, err = decoded(value)
	}
	return err
}

func decoded(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		return v.Int64()
	case map[string]any:
		code, ok := v["error"].(string)
		if !ok {
			return nil, fmt.Errorf("oracle: a reply %v", v)
		}
		return Failure(code), nil
	case []any:
		list := []any{}
		for _, item := range v {
			item, err := decoded(item)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		return list, nil
	}
	return value, nil
}
