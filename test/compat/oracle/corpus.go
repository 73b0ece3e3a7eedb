package oracle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Case is a step that is played on a state. Times are relative to the call.
type Case struct {
	Operation string   `json:"operation"`
	Does      string   `json:"does"`
	Diverges  []string `json:"diverges"`
	Step      Step     `json:"step"`
	Before    State    `json:"before"`
	Results   []Result `json:"results"`
}

// Result is the effect of a case in some releases.
type Result struct {
	Redisson []string `json:"redisson"`
	// There are several Calls in old releases, which renew one name at a time.
	Calls []Args `json:"calls"`
	// Messages are the published messages, each as "channel payload".
	Reply    Reply    `json:"reply"`
	Messages []string `json:"messages"`
	After    State    `json:"after"`
	// Own and Shared are the differences of our side in each of the two [Ways].
	Own    *Change `json:"own,omitempty"`
	Shared *Change `json:"shared,omitempty"`
}

// Change is the difference between our side and a result.
type Change struct {
	Reply    Reply    `json:"reply"`
	Messages []string `json:"messages"`
	// After contains the keys that differ. The entry is nil for a key that does not exist on our side.
	After map[string]*Entry `json:"after,omitempty"`
}

// Vector is a case with a result.
type Vector struct {
	*Case
	*Result
}

// Change returns a pointer to the recorded difference.
func (v Vector) Change(ours Ours) **Change {
	if ours.Shared {
		return &v.Shared
	}
	return &v.Own
}

// Change returns the difference of our side, or nil if there is none.
func (o *Outcome) Change() *Change {
	if len(o.Diffs) == 0 {
		return nil
	}
	c := &Change{Reply: Reply{o.Ours.Reply}, Messages: o.Ours.Messages}
	theirs, ours := o.Theirs.After.after(-o.At), o.Ours.After.after(-o.At)
	for _, name := range keysOf(theirs, ours) {
		if theirs.same(ours, name) {
			continue
		}
		if c.After == nil {
			c.After = map[string]*Entry{}
		}
		c.After[name] = nil
		if e, there := ours[name]; there {
			c.After[name] = &e
		}
	}
	return c
}

// Corpus contains the recorded cases of one kind.
type Corpus struct {
	kind  *Kind
	Cases []*Case
}

// Load reads the file for a kind. If the file does not exist, the Corpus is empty.
func Load(folder string, kind *Kind) (*Corpus, error) {
	c := &Corpus{kind: kind}
	text, err := os.ReadFile(c.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err := errors.Join(err, json.Unmarshal(text, &c.Cases)); err != nil {
		return nil, fmt.Errorf("%s: %w", c.path(folder), err)
	}
	for _, one := range c.Cases {
		if one.Step.Op, err = kind.operation(one.Operation); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Corpus) path(folder string) string { return filepath.Join(folder, c.kind.Name+".json") }

var layout = strings.NewReplacer(
	`{"operation":`, "\n{\"operation\":", `,"step":`, ",\n \"step\":", `,"before":`, ",\n \"before\":", `{"redisson":`, "\n {\"redisson\":",
	`,"reply":`, ",\n  \"reply\":", `,"own":`, ",\n  \"own\":", `,"shared":`, ",\n  \"shared\":",
)

// Save writes the file.
func (c *Corpus) Save(folder string) error {
	text, err := json.Marshal(c.Cases)
	if err != nil {
		return err
	}
	return os.WriteFile(c.path(folder), []byte(layout.Replace(string(text))+"\n"), 0o644)
}

// Vectors returns all results with their cases.
func (c *Corpus) Vectors() (all []Vector) {
	for _, one := range c.Cases {
		for i := range one.Results {
			all = append(all, Vector{one, &one.Results[i]})
		}
	}
	return all
}

// Of returns the vectors of the newest recorded release up to r. Only releases that differ from their predecessors are
// recorded.
func (c *Corpus) Of(r Release) (all []Vector) {
	recorded := c.recorded(r)
	for _, v := range c.Vectors() {
		if slices.Contains(v.Redisson, recorded) {
			all = append(all, v)
		}
	}
	return all
}

func (c *Corpus) recorded(r Release) (newest string) {
	for _, v := range c.Vectors() {
		for _, text := range v.Redisson {
			if byRelease(text, r.String()) <= 0 && (newest == "" || byRelease(text, newest) > 0) {
				newest = text
			}
		}
	}
	return newest
}

// Replace replaces a release's results for the cases that Of returns.
func (c *Corpus) Replace(r Release, results []Result) {
	vectors, isRecorded := c.Of(r), c.recorded(r) == r.String()
	if !isRecorded && slices.EqualFunc(vectors, results, func(v Vector, r Result) bool { return v.sameAs(r) }) {
		return
	}
	for i, v := range vectors {
		one, result := v.Case, results[i]
		v.Redisson = slices.DeleteFunc(v.Redisson, func(text string) bool { return text == r.String() })
		result.Redisson = nil
		at := slices.IndexFunc(one.Results, result.sameAs)
		if at < 0 {
			at, one.Results = len(one.Results), append(one.Results, result)
		}
		known := &one.Results[at]
		known.Redisson = slices.SortedFunc(slices.Values(append(known.Redisson, r.String())), byRelease)
		one.Results = slices.DeleteFunc(one.Results, func(r Result) bool { return len(r.Redisson) == 0 })
		slices.SortFunc(one.Results, func(a, b Result) int { return byRelease(a.Redisson[0], b.Redisson[0]) })
	}
}

func (r Result) sameAs(other Result) bool {
	r.Redisson, r.Own, r.Shared = other.Redisson, other.Own, other.Shared
	return reflect.DeepEqual(r, other)
}

func byRelease(a, b string) int {
	x, err1 := ParseRelease(a)
	y, err2 := ParseRelease(b)
	if errors.Join(err1, err2) != nil {
		return cmp.Compare(a, b)
	}
	return slices.Compare(x.parts[:], y.parts[:])
}
