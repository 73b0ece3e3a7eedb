package oracle

import (
	"fmt"
	"slices"
)

// The names of the fenced lock's divergences beside those that it shares with the plain lock.
const (
	fencedGrant   = "token: a grant"
	fencedRefusal = "token: a refusal"
	fencedGone    = "token: a re-entry of a lock that is gone"
)

var fencedDiverges = slices.Concat([]Divergence{
	{
		Name:     fencedGrant,
		Reason:   "a number of 2^53 and above loses digits in a script, and a text does not",
		Applies:  hasFenced,
		Explains: isFencedGrant,
	},
	{
		Name:     fencedRefusal,
		Reason:   "Redisson's reply for a lock that never expires, [-1, -1], is success to its client",
		Applies:  hasFenced,
		Explains: isFencedRefusal,
	},
	{
		Name:     fencedGone,
		Reason:   "as for the plain lock, and nothing is counted",
		Applies:  hasFenced,
		Explains: isFencedGone,
	},
}, slices.DeleteFunc(slices.Clone(plainDiverges), func(d Divergence) bool { return d.Name != ownLease && d.Name != ownReentry }))

func hasFenced(r Release, _ Ours) bool { return r.HasFenced() }

// plainBut are the plain lock's divergences but for some.
func plainBut(names ...string) []Divergence {
	return slices.DeleteFunc(slices.Clone(plainDiverges), func(d Divergence) bool { return slices.Contains(names, d.Name) })
}

// theirToken returns the token of a grant of Redisson's; ok is false for other replies.
func (o *Outcome) theirToken() (token any, ok bool) {
	pair, isPair := o.Theirs.Reply.([]any)
	switch {
	case o.Step.Op == AcquireCounted:
		return nil, o.Theirs.Reply == nil
	case !isPair || len(pair) != 2 || pair[0] != int64(-1) || pair[1] == int64(-1):
		return nil, false
	}
	return pair[1], true
}

// theirLeft returns the time left in a refusal of Redisson's, nil for other replies.
func (o *Outcome) theirLeft() any {
	pair, isPair := o.Theirs.Reply.([]any)
	switch {
	case o.Step.Op == AcquireCounted:
		return o.Theirs.Reply
	case isPair && len(pair) == 2 && pair[1] == int64(-1):
		return pair[0]
	}
	return nil
}

// isFencedGrant: ours replies the token alone, as the counter has it. That of Redisson is a
// number, which may have lost digits.
func isFencedGrant(o *Outcome, d Diff) bool {
	token, granted := o.theirToken()
	counter := o.Ours.After[o.Step.counter()].Value
	if !o.isFenced() || d.What != "reply" || !granted || counter != o.Theirs.After[o.Step.counter()].Value {
		return false
	}
	const exact = 1 << 53
	number, isNumber := o.Ours.Reply.(int64)
	if isNumber && (number >= exact || token != nil && token != number) {
		return false
	}
	return fmt.Sprint(o.Ours.Reply) == counter
}

// isFencedRefusal: ours has the holder behind the time left.
func isFencedRefusal(o *Outcome, d Diff) bool {
	pair, ok := o.Ours.Reply.([]any)
	if !o.isFenced() || d.What != "reply" || !ok || len(pair) != 2 || !o.sameTimeLeft(o.theirLeft(), pair[0]) {
		return false
	}
	holder, _ := pair[1].(string)
	count, _ := o.Prior.Count(o.name(), holder)
	return holder != o.Step.Owner && count > 0
}

// isFencedGone: the owner has no hold that ours could enter again; nothing has changed, and
// the counter has not.
func isFencedGone(o *Outcome, d Diff) bool {
	count, isLock := o.count()
	mine := o.isAbout(d) || d.Key == o.Step.counter()
	return o.isFenced() && o.isReentry() && mine && d.What != "messages" && isLock && count == 0 &&
		o.Ours.Reply == nil && o.unchanged() && o.Prior.same(o.Ours.After, o.Step.counter())
}
