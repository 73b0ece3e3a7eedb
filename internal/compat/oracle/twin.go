package oracle

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Twin is two servers that are kept in the same state. It is for one goroutine.
type Twin struct {
	theirs, ours *side
}

// NewTwin takes two servers that nobody else uses, by how to connect to them.
func NewTwin(theirs, ours func() (redis.Conn, error)) (*Twin, error) {
	a, err := newSide(theirs)
	if err != nil {
		return nil, err
	}
	b, err := newSide(ours)
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return &Twin{theirs: a, ours: b}, nil
}

// Close closes the connections.
func (t *Twin) Close() error { return errors.Join(t.theirs.close(), t.ours.close()) }

// Reset begins anew, with no key on either server.
func (t *Twin) Reset() error {
	return t.theirs.become(nil)
}

// Do runs a plain command on Redisson's side, to bring about a state.
func (t *Twin) Do(command string, args ...any) (any, error) {
	return normal(t.theirs.conn.Do(command, args...))
}

// Seen is what a step did on one side.
type Seen struct {
	// Reply is the script's reply; an error is a Failure.
	Reply any
	// After has all keys there are then.
	After State
	// Counts has the count of the step's owner in each of its locks then.
	Counts map[string]int64
	// Messages has what was published: "channel payload".
	Messages []string
}

// Outcome is what a step did on both, and how that differs.
type Outcome struct {
	// Step is the step.
	Step Step
	// Prior has all keys there were before, on both sides.
	Prior State
	// Theirs and Ours are what was seen on each side.
	Theirs, Ours Seen
	// Counts has the count of the step's owner in each of its locks before; a key
	// that is no lock is not in it.
	Counts map[string]int64
	// Elapsed is how long it took, which is how far times may lie apart, in
	// milliseconds, rounded up.
	Elapsed int64
	// Diffs is how the sides differ.
	Diffs []Diff
}

// Play puts our side into the state of Redisson's, takes the step on both and
// compares.
func (t *Twin) Play(theirs *Theirs, ours Ours, step Step) (*Outcome, error) {
	prior, err := t.theirs.state()
	if err != nil {
		return nil, err
	}
	if err := t.ours.become(prior); err != nil {
		return nil, err
	}
	o := &Outcome{Step: step, Prior: prior}
	if o.Counts, err = t.theirs.counts(step); err != nil {
		return nil, err
	}
	began := time.Now()
	list := step.Op == Renew && !theirs.Release.RenewsBatches()
	var err1, err2 error
	o.Theirs.Reply, err1 = t.theirs.run(theirs.requests(step), list)
	o.Ours.Reply, err2 = t.ours.run([]Request{ours.request(step)}, false)
	o.Elapsed = time.Since(began).Milliseconds() + 2
	if err := errors.Join(err1, err2, t.theirs.look(step, &o.Theirs), t.ours.look(step, &o.Ours)); err != nil {
		return nil, err
	}
	o.Diffs = o.compare()
	return o, nil
}

func (s *side) look(step Step, seen *Seen) error {
	var err1, err2, err3 error
	seen.After, err1 = s.state()
	seen.Counts, err2 = s.counts(step)
	seen.Messages, err3 = s.messages()
	return errors.Join(err1, err2, err3)
}

// Diff is one difference.
type Diff struct {
	// What is "reply", "messages", "key", "value" or "ttl".
	What string
	// Key is the key that differs, for the last three.
	Key string
	// Theirs and Ours are what there was: for "key" whether the key is there,
	// for "ttl" when it expires.
	Theirs, Ours any
}

// String tells the difference in a line.
func (d Diff) String() string {
	if d.Key == "" {
		return fmt.Sprintf("%s: theirs %v, ours %v", d.What, d.Theirs, d.Ours)
	}
	return fmt.Sprintf("%s of %q: theirs %.80q, ours %.80q", d.What, d.Key, fmt.Sprint(d.Theirs), fmt.Sprint(d.Ours))
}

func (o *Outcome) compare() []Diff {
	var diffs []Diff
	if !o.sameReply() {
		diffs = append(diffs, Diff{What: "reply", Theirs: o.Theirs.Reply, Ours: o.Ours.Reply})
	}
	if !slices.Equal(o.Theirs.Messages, o.Ours.Messages) {
		diffs = append(diffs, Diff{What: "messages", Theirs: o.Theirs.Messages, Ours: o.Ours.Messages})
	}
	for name := range union(o.Theirs.After, o.Ours.After) {
		diffs = append(diffs, o.compareKey(name)...)
	}
	return diffs
}

func (o *Outcome) compareKey(name string) []Diff {
	theirs, inTheirs := o.Theirs.After[name]
	ours, inOurs := o.Ours.After[name]
	if !inTheirs || !inOurs {
		return []Diff{{What: "key", Key: name, Theirs: inTheirs, Ours: inOurs}}
	}
	var diffs []Diff
	if theirs.Type != ours.Type || theirs.Dump != ours.Dump {
		diffs = append(diffs, Diff{What: "value", Key: name, Theirs: theirs.Dump, Ours: ours.Dump})
	}
	if !o.sameTime(theirs.Expires, ours.Expires) {
		diffs = append(diffs, Diff{What: "ttl", Key: name, Theirs: theirs.Expires, Ours: ours.Expires})
	}
	return diffs
}

// sameTime: what sets a time runs on ours after theirs, by as much as the two
// runs lie apart at most; what leaves it alone leaves it equal.
func (o *Outcome) sameTime(theirs, ours int64) bool {
	if theirs < 0 || ours < 0 {
		return theirs == ours
	}
	return ours >= theirs && ours-theirs <= o.Elapsed
}

// sameReply: a reply that tells the time left is smaller on the side that was
// asked later.
func (o *Outcome) sameReply() bool {
	if o.Step.Op == Acquire {
		return o.sameTimeLeft(o.Theirs.Reply, o.Ours.Reply)
	}
	return reflect.DeepEqual(o.Theirs.Reply, o.Ours.Reply)
}

func (o *Outcome) sameTimeLeft(theirs, ours any) bool {
	a, ok1 := theirs.(int64)
	b, ok2 := ours.(int64)
	if ok1 && ok2 && a > 0 && b > 0 {
		return a >= b && a-b <= o.Elapsed
	}
	return reflect.DeepEqual(theirs, ours)
}

func union(a, b State) map[string]bool {
	all := map[string]bool{}
	for name := range a {
		all[name] = true
	}
	for name := range b {
		all[name] = true
	}
	return all
}
