package oracle

import (
	"fmt"
	"reflect"
	"slices"
)

// Seen is what a step did on one side.
type Seen struct {
	// Reply is the script's reply; an error is a Failure.
	Reply any
	// After has all keys there are then.
	After State
	// Messages has what was published: "channel payload".
	Messages []string
}

// Outcome is what a step did on both, and how that differs.
type Outcome struct {
	// Step is the step.
	Step Step
	// Shared says that ours was done for an owner that others use, too.
	Shared bool
	// Prior has all keys there were before, on both sides.
	Prior State
	// Theirs and Ours are what was seen on each side.
	Theirs, Ours Seen
	// At is when it was done, in milliseconds since 1970. Elapsed is how far times
	// may lie apart, in milliseconds: ours was later by that much at most.
	At, Elapsed int64
	// Diffs is how the sides differ.
	Diffs []Diff
}

// Diff is one difference.
type Diff struct {
	// What is "reply", "messages", "key", "value" or "ttl".
	What string
	// Key is the key that differs, for "key", "value" and "ttl".
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
	for _, name := range keysOf(o.Theirs.After, o.Ours.After) {
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
	if !o.sameValue(theirs, ours) {
		diffs = append(diffs, Diff{What: "value", Key: name, Theirs: theirs.Value, Ours: ours.Value})
	}
	if !o.sameTime(theirs.Expires, ours.Expires) {
		diffs = append(diffs, Diff{What: "ttl", Key: name, Theirs: theirs.Expires, Ours: ours.Expires})
	}
	return diffs
}

// sameTime: two runs that set a time lie apart by Elapsed at most. A time that is set to what was
// left may be later on either side.
func (o *Outcome) sameTime(theirs, ours int64) bool {
	if theirs == never || ours == never {
		return theirs == ours
	}
	return max(ours-theirs, theirs-ours) <= o.Elapsed
}

// sameReply: a reply that tells the time left is smaller on the side that was
// asked later.
func (o *Outcome) sameReply() bool {
	if o.Step.Op.TellsTime {
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

// sameValue: the same, but for scores that are made from a time.
func (o *Outcome) sameValue(theirs, ours Entry) bool {
	scores, ok1 := theirs.Value.(map[string]float64)
	others, ok2 := ours.Value.(map[string]float64)
	if ok1 && ok2 && o.Step.Op.TellsTime {
		return o.sameScores(scores, others)
	}
	return theirs.Type == ours.Type && reflect.DeepEqual(theirs.Value, ours.Value)
}

// sameScores: only the step's own score may be made from a time, and then it is
// smaller on the side that ran later.
func (o *Outcome) sameScores(theirs, ours map[string]float64) bool {
	same := len(theirs) == len(ours)
	for member, score := range theirs {
		other, ok := ours[member]
		apart := score - other
		later := member == o.Step.Owner && apart > 0 && apart <= float64(o.Elapsed)
		same = same && ok && (apart == 0 || later)
	}
	return same
}

// Divergence is a difference from Redisson that is meant.
type Divergence struct {
	// Name tells it apart, Reason says why it is meant. docs/protocol.md has the
	// same under "Differences on purpose".
	Name, Reason string
	// Applies tells for which releases, and for which owners of ours, it is to be
	// seen.
	Applies func(Release, Ours) bool
	// Explains tells whether it is the reason for one difference. It must be as
	// narrow as can be: what it lets through is not looked at any more.
	Explains func(o *Outcome, d Diff) bool
}

// Referee counts which divergences have explained something.
type Referee struct {
	release Release
	ours    Ours
	kind    *Kind
	seen    map[string]int
	steps   map[*Operation]int
}

// NewReferee judges outcomes of one release and one way of ours by a kind's list
// of divergences.
func NewReferee(r Release, ours Ours, kind *Kind) *Referee {
	return &Referee{release: r, ours: ours, kind: kind, seen: map[string]int{}, steps: map[*Operation]int{}}
}

// Judge returns an error for a difference that no divergence explains.
func (r *Referee) Judge(o *Outcome) error {
	_, err := r.explain(o)
	return err
}

// JudgeAs is Judge for an outcome of which it is known which divergences must be
// seen, where they apply. Others, or fewer, are an error.
func (r *Referee) JudgeAs(o *Outcome, meant []string) error {
	seen, err := r.explain(o)
	if err != nil {
		return err
	}
	for _, d := range r.kind.Diverges {
		if want := slices.Contains(meant, d.Name) && r.Expects(d); want != slices.Contains(seen, d.Name) {
			return fmt.Errorf("against Redisson %s, %s: %q is to be seen: %v", r.release, o.Step, d.Name, want)
		}
	}
	return nil
}

// explain returns the divergences that explain the differences.
func (r *Referee) explain(o *Outcome) (names []string, err error) {
	r.steps[o.Step.Op]++
	all := slices.Concat(r.kind.Diverges, r.kind.Also)
	for _, diff := range o.Diffs {
		i := slices.IndexFunc(all, func(d Divergence) bool { return r.Expects(d) && d.Explains(o, diff) })
		if i < 0 {
			return names, fmt.Errorf("against Redisson %s, %s: %s", r.release, o.Step, diff)
		}
		name := all[i].Name
		names = append(names, name)
		r.seen[name]++
	}
	return names, nil
}

// Expects tells whether a divergence is to be seen here.
func (r *Referee) Expects(d Divergence) bool { return d.Applies(r.release, r.ours) }

// Unseen returns the divergences that should have occurred and have not.
func (r *Referee) Unseen() []string {
	var unseen []string
	for _, row := range r.kind.Diverges {
		if r.Expects(row) && r.seen[row.Name] == 0 {
			unseen = append(unseen, row.Name)
		}
	}
	return unseen
}

// Steps returns how many steps of an operation were judged.
func (r *Referee) Steps(op *Operation) int { return r.steps[op] }
