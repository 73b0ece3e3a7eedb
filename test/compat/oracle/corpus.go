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

// Case is one step on one state, and what live Redissons did with it. Times count from the moment
// of the call: nothing here depends on when it was recorded.
type Case struct {
	// Operation is the operation's name.
	Operation string `json:"operation"`
	// Does says in words what happens. It is unique within its operation.
	Does string `json:"does"`
	// Diverges names the intended differences of ours, where they apply.
	Diverges []string `json:"diverges"`
	// Step is what the caller wanted.
	Step Step `json:"step"`
	// Before has all keys before the step.
	Before State `json:"before"`
	// Results are in the order of the releases.
	Results []Result `json:"results"`
}

// Result is what releases did with a case, and what ours does.
type Result struct {
	// Redisson has the releases that did exactly this.
	Redisson []string `json:"redisson"`
	// Calls is what Redisson's script was called with; old releases renew one name at a time.
	Calls []Args `json:"calls"`
	// Reply is the script's, After has all keys afterwards, and Messages has what was
	// published, in order: "channel payload".
	Reply    Reply    `json:"reply"`
	Messages []string `json:"messages"`
	After    State    `json:"after"`
	// Own and Shared are what ours does differently, for an owner of our own and for one that
	// travels; nil for nothing.
	Own    *Change `json:"own,omitempty"`
	Shared *Change `json:"shared,omitempty"`
}

// Change is how ours differs from a result.
type Change struct {
	// Reply and Messages are ours.
	Reply    Reply    `json:"reply"`
	Messages []string `json:"messages"`
	// After has the keys that differ; nil for a key that ours does not have.
	After map[string]*Entry `json:"after,omitempty"`
}

// Vector is a case with what some releases did.
type Vector struct {
	*Case
	*Result
}

// Change is what ours is recorded to do differently.
func (v Vector) Change(ours Ours) **Change {
	if ours.Shared {
		return &v.Shared
	}
	return &v.Own
}

// Change returns how ours differs in an outcome; nil for not at all.
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

// Corpus has the recorded cases of one kind of lock.
type Corpus struct {
	kind *Kind
	// Cases are in the order of the operations.
	Cases []*Case
}

// Load reads a kind's file in a folder. A file that does not exist is an empty one.
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

// layout begins a new line for some fields, so that changes can be read. Quotes in texts are
// escaped, so that nothing else matches.
var layout = strings.NewReplacer(
	`{"operation":`, "\n{\"operation\":", `,"step":`, ",\n \"step\":", `,"before":`, ",\n \"before\":", `{"redisson":`, "\n {\"redisson\":",
	`,"reply":`, ",\n  \"reply\":", `,"own":`, ",\n  \"own\":", `,"shared":`, ",\n  \"shared\":",
)

// Save writes the file. The same cases make the same bytes.
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

// Of returns the vectors of a release: those of the newest recorded one that is not newer. A
// release is recorded only if it differs from the one before it.
func (c *Corpus) Of(r Release) (all []Vector) {
	recorded := c.recorded(r)
	for _, v := range c.Vectors() {
		if slices.Contains(v.Redisson, recorded) {
			all = append(all, v)
		}
	}
	return all
}

// recorded is the release whose vectors are those of r.
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

// Replace takes the results of a release, of the cases in Of, for those recorded. Releases
// with the same result share it.
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

// sameAs reports whether two results differ at most in their releases and in ours.
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
