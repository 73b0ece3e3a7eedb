package oracle

import (
	"fmt"
	"reflect"
	"slices"
)

// Seen is the effect of a step on one side.
type Seen struct {
	Reply    any
	After    State
	Messages []string
}

// Outcome is the effect of a step on both sides, and the differences between them.
type Outcome struct {
	Step         Step
	Shared       bool
	Prior        State
	Theirs, Ours Seen
	// At is the time of the step, and Elapsed is the maximum delay of our side. Both are in milliseconds.
	At, Elapsed int64
	Diffs       []Diff
}

// Diff is one difference between the two sides.
type Diff struct {
	// What is "reply", "messages", "key", "value" or "ttl".
	What string
	Key  string
	// For "key", the values say whether the key exists. For "ttl", they are the times at which it expires.
	Theirs, Ours any
}

// String describes the difference.
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

func (o *Outcome) sameTime(theirs, ours int64) bool {
	if theirs == never || ours == never {
		return theirs == ours
	}
	return max(ours-theirs, theirs-ours) <= o.Elapsed
}

// sameReply reports whether the replies are equal. A remaining time may be shorter on our side, which runs later.
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

func (o *Outcome) sameValue(theirs, ours Entry) bool {
	scores, ok1 := theirs.Value.(map[string]float64)
	others, ok2 := ours.Value.(map[string]float64)
	if ok1 && ok2 && o.Step.Op.TellsTime {
		return o.sameScores(scores, others)
	}
	return theirs.Type == ours.Type && reflect.DeepEqual(theirs.Value, ours.Value)
}

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

// Divergence is an intended difference from Redisson.
type Divergence struct {
	// Name and Reason also appear in docs/protocol.md under "Differences on purpose".
	Name, Reason string
	// Applies reports whether the divergence must occur for a release and a variant of our side.
	Applies func(Release, Ours) bool
	// Explains reports whether the divergence explains a difference. It must be narrow, because differences that are
	// explained are not checked further.
	Explains func(o *Outcome, d Diff) bool
}

// Referee checks outcomes, and counts how often each divergence explained a difference.
type Referee struct {
	release Release
	ours    Ours
	kind    *Kind
	seen    map[string]int
	steps   map[*Operation]int
}

// NewReferee returns a Referee for a release and a Way.
func NewReferee(r Release, ours Ours, kind *Kind) *Referee {
	return &Referee{release: r, ours: ours, kind: kind, seen: map[string]int{}, steps: map[*Operation]int{}}
}

// Judge returns an error if the outcome has a difference that is not explained by a divergence.
func (r *Referee) Judge(o *Outcome) error {
	_, err := r.explain(o)
	return err
}

// JudgeAs is like Judge, but also returns an error if the divergences that occurred are not exactly those in meant.
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

// Expects reports whether a divergence must occur for the referee's release.
func (r *Referee) Expects(d Divergence) bool { return d.Applies(r.release, r.ours) }

// Unseen returns the expected divergences that have not occurred.
func (r *Referee) Unseen() []string {
	var unseen []string
	for _, row := range r.kind.Diverges {
		if r.Expects(row) && r.seen[row.Name] == 0 {
			unseen = append(unseen, row.Name)
		}
	}
	return unseen
}

// Steps returns the number of steps of an operation that have been judged.
func (r *Referee) Steps(op *Operation) int { return r.steps[op] }
