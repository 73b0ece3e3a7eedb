package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/codec"
)

// Divergence is a difference from Redisson that is meant.
type Divergence struct {
	// Name tells it apart, Reason says why it is meant. docs/protocol.md lists
	// the same under "Differences on purpose".
	Name, Reason string
	// Applies tells for which releases it is to be seen.
	Applies func(Release) bool
	// Explains tells whether it is the reason for one difference. It must be as
	// narrow as can be: what it lets through is not looked at any more.
	Explains func(o *Outcome, d Diff) bool
}

// Diverges lists all divergences of the plain lock's scripts.
var Diverges = []Divergence{
	{
		Name:     "acquire: the holder's name",
		Reason:   "whoever is refused learns who holds the lock, without another request",
		Applies:  func(Release) bool { return true },
		Explains: isNamed,
	},
	{
		Name:     "release: latch",
		Reason:   "a lost reply is settled by asking the server, and each pair of lock and unlock saves the calls that keep the latch",
		Applies:  Release.HasLatch,
		Explains: isLatch,
	},
	{
		Name:     "release: count",
		Reason:   "sent twice, or late, it cannot free a hold that is still meant to be held",
		Applies:  func(Release) bool { return true },
		Explains: isTarget,
	},
	{
		Name:     "renewal: time to live",
		Reason:   "one that the network delivers late must not cut a longer lease that another hold of the owner counts on",
		Applies:  func(Release) bool { return true },
		Explains: isLonger,
	},
	{
		Name:     "renewal: a key of another type",
		Reason:   "one spoilt key must not cost other locks their lease",
		Applies:  func(Release) bool { return true },
		Explains: isSpoiltRenewal,
	},
}

// wrongType is the reply, any, so that it compares with others.
var wrongType any = Failure("WRONGTYPE")

// isNamed: a refusal of ours has the holder behind the time left.
func isNamed(o *Outcome, d Diff) bool {
	pair, ok := o.Ours.Reply.([]any)
	if o.Step.Op != Acquire || d.What != "reply" || !ok || len(pair) != 2 {
		return false
	}
	holder, isText := pair[1].([]byte)
	return isText && len(holder) > 0 && string(holder) != o.Step.Owner && o.sameTimeLeft(o.Theirs.Reply, pair[0])
}

// isLatch: Redisson's release has left a latch with its reply, we have not.
func isLatch(o *Outcome, d Diff) bool {
	s := o.Step
	if s.Op != Free || d.What != "key" || d.Key != codec.LatchKey(s.Names[0], s.RequestID) || d.Ours == true {
		return false
	}
	latch, reply := o.Theirs.After[d.Key], o.Theirs.Reply
	return latch.Type == "string" && latch.Expires > 0 && (reply == int64(0) || reply == int64(1))
}

// isTarget: the release does not aim at one less than the count there is, or was
// sent again; ours then does what the target says. Sent again, ours also sees a
// key that has become something else, where Redisson's sees its latch.
func isTarget(o *Outcome, d Diff) bool {
	s := o.Step
	if s.Op != Free || strings.Contains(d.Key, "redisson_unlock_latch") {
		return false
	}
	count, isLock := o.Counts[s.Names[0]]
	switch {
	case !s.Repeat && (!isLock || s.Target == count-1):
		return false
	case !isLock:
		return o.Ours.Reply == wrongType && o.unchanged()
	}
	return o.isAsReleased(count)
}

// unchanged tells whether our side has done nothing to the step's lock.
func (o *Outcome) unchanged() bool {
	name := o.Step.Names[0]
	before, had := o.Prior[name]
	after, has := o.Ours.After[name]
	return had == has && before == after && len(o.Ours.Messages) == 0
}

// isAsReleased tells whether our side is as the contract of our release says.
func (o *Outcome) isAsReleased(count int64) bool {
	s := o.Step
	name := s.Names[0]
	_, has := o.Ours.After[name]
	switch {
	case count == 0:
		return o.Ours.Reply == nil && o.unchanged()
	case s.Target >= count:
		return o.Ours.Reply == int64(0) && o.unchanged()
	case s.Target > 0:
		return o.Ours.Reply == int64(0) && has && o.Ours.Counts[name] == s.Target && len(o.Ours.Messages) == 0
	}
	free := codec.LockChannel(name) + " " + codec.MessageUnlock
	return o.Ours.Reply == int64(1) && !has && slices.Equal(o.Ours.Messages, []string{free})
}

// isLonger: a renewal of ours leaves a time to live that is longer.
func isLonger(o *Outcome, d Diff) bool {
	before, had := o.Prior[d.Key]
	return o.Step.Op == Renew && d.What == "ttl" && had &&
		before.Expires == o.Ours.After[d.Key].Expires && before.Expires > o.Theirs.After[d.Key].Expires
}

// isSpoiltRenewal: a batch with a key of another type fails in Redisson, and
// locks after that key are not renewed. Ours answers 0 for it and 1 for every
// lock that the owner holds.
func isSpoiltRenewal(o *Outcome, d Diff) bool {
	if o.Step.Op != Renew || d.What != "reply" && d.What != "ttl" || !o.failed(o.Theirs.Reply) {
		return false
	}
	answers, ok := o.Ours.Reply.([]any)
	if !ok || len(answers) != len(o.Step.Names) {
		return false
	}
	for i, name := range o.Step.Names {
		if (answers[i] == int64(1)) != (o.Counts[name] > 0) {
			return false
		}
	}
	// A time may differ only for a lock that we have renewed.
	return d.What == "reply" || o.Counts[d.Key] > 0
}

// failed: releases that renew one lock at a time reply a list.
func (o *Outcome) failed(reply any) bool {
	if list, ok := reply.([]any); ok {
		return slices.Contains(list, wrongType)
	}
	return reply == wrongType
}

// Referee counts which divergences have explained something.
type Referee struct {
	release Release
	list    []Divergence
	seen    map[string]int
	steps   map[Operation]int
}

// NewReferee judges outcomes of one release by a list of divergences.
func NewReferee(r Release, list []Divergence) *Referee {
	return &Referee{release: r, list: list, seen: map[string]int{}, steps: map[Operation]int{}}
}

// Judge returns an error for a difference that no divergence explains.
func (r *Referee) Judge(o *Outcome) error {
	r.steps[o.Step.Op]++
	for _, d := range o.Diffs {
		if !r.explain(o, d) {
			return fmt.Errorf("against Redisson %s, %s: %s", r.release, o.Step, d)
		}
	}
	return nil
}

func (r *Referee) explain(o *Outcome, d Diff) bool {
	for _, row := range r.list {
		if row.Applies(r.release) && row.Explains(o, d) {
			r.seen[row.Name]++
			return true
		}
	}
	return false
}

// Unseen returns the divergences that should have occurred and have not.
func (r *Referee) Unseen() []string {
	var unseen []string
	for _, row := range r.list {
		if row.Applies(r.release) && r.seen[row.Name] == 0 {
			unseen = append(unseen, row.Name)
		}
	}
	return unseen
}

// Steps returns how many steps of an operation were judged.
func (r *Referee) Steps(op Operation) int { return r.steps[op] }

// Seen returns how many differences a divergence has explained.
func (r *Referee) Seen(name string) int { return r.seen[name] }
