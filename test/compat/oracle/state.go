package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

const never = -1

// Entry is a key on a server.
type Entry struct {
	Type string
	// Value is a map of strings, a string, a list of strings, or a map of scores.
	Value any
	// Expires is in milliseconds since 1970 or, in recorded vectors, relative to the call.
	Expires int64
}

// State contains all keys on a server.
type State map[string]Entry

// Count returns an owner's hold count. isLock is false if the key is not a lock.
func (s State) Count(name, owner string) (count int64, isLock bool) {
	e, ok := s[name]
	if !ok {
		return 0, true
	}
	fields, isLock := e.Value.(map[string]string)
	count, _ = strconv.ParseInt(fields[owner], 10, 64)
	return count, isLock
}

func (s State) same(other State, name string) bool {
	a, inA := s[name]
	b, inB := other[name]
	return inA == inB && a.Type == b.Type && a.Expires == b.Expires && reflect.DeepEqual(a.Value, b.Value)
}

func (s State) after(ms int64) State {
	moved := State{}
	for name, e := range s {
		if e.Expires != never {
			e.Expires += ms
		}
		moved[name] = e
	}
	return moved
}

type entryJSON struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
	Left  *int64          `json:"left,omitempty"` // milliseconds
}

// MarshalJSON writes an entry of a recorded vector.
func (e Entry) MarshalJSON() ([]byte, error) {
	value, err := json.Marshal(e.Value)
	if err != nil {
		return nil, err
	}
	out := entryJSON{Type: e.Type, Value: value}
	if e.Expires != never {
		out.Left = &e.Expires
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads an entry of a recorded vector.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var in entryJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*e = Entry{Type: in.Type, Expires: never}
	if in.Left != nil {
		e.Expires = *in.Left
	}
	var err error
	switch in.Type {
	case "hash":
		e.Value, err = read[map[string]string](in.Value)
	case "string":
		e.Value, err = read[string](in.Value)
	case "list":
		e.Value, err = read[[]string](in.Value)
	case "zset":
		e.Value, err = read[map[string]float64](in.Value)
	default:
		err = fmt.Errorf("oracle: a key of type %q", in.Type)
	}
	return err
}

func read[T any](text []byte) (T, error) {
	var value T
	err := json.Unmarshal(text, &value)
	return value, err
}

// Reply is a script's reply.
type Reply struct {
	Value any
}

// MarshalJSON writes a failure as an object.
func (f Failure) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"error": string(f)})
}

// MarshalJSON writes the value.
func (r Reply) MarshalJSON() ([]byte, error) { return json.Marshal(r.Value) }

// UnmarshalJSON reads the value.
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

func keysOf(a, b State) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
