package oracle

import (
	"maps"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/codec"
)

// The names of the plain lock's divergences, as tables and recorded vectors have
// them.
const (
	anyHolder  = "acquire: the holder's name"
	anyLonger  = "renewal: time to live"
	ownLatch   = "release: latch"
	ownCount   = "release: count"
	newLatch   = "release of an owner that travels: latch before 3.24"
	ownReply   = "re-entry: reply"
	ownGone    = "re-entry: a lock that is gone"
	ownLease   = "re-entry: time to live"
	ownReentry = "re-entry: count"
	anyRenewal = "renewal: a key of another type among the batch"
)

// Which releases, and which owners of ours.
func always(Release, Ours) bool            { return true }
func ownOwner(_ Release, o Ours) bool      { return !o.Shared }
func ownAndLatch(r Release, o Ours) bool   { return !o.Shared && r.HasLatch() }
func sharedNoLatch(r Release, o Ours) bool { return o.Shared && !r.HasLatch() }

var plainDiverges = []Divergence{
	{
		Name:     anyHolder,
		Reason:   "a refused caller learns the holder without another request",
		Applies:  always,
		Explains: isNamed,
	},
	{
		Name:     ownLatch,
		Reason:   "a lost reply is resolved by asking the server, which saves the calls that keep the latch",
		Applies:  ownAndLatch,
		Explains: isLatch,
	},
	{
		Name:     ownCount,
		Reason:   "sent twice or late, it cannot free a hold that is still in use",
		Applies:  ownOwner,
		Explains: isTarget,
	},
	{
		Name:     newLatch,
		Reason:   "sent again, it is harmless beside every Redisson",
		Applies:  sharedNoLatch,
		Explains: isNewLatch,
	},
	{
		Name:     ownReply,
		Reason:   "nil means not held, as in the other scripts",
		Applies:  always,
		Explains: isReentryReply,
	},
	{
		Name:     ownGone,
		Reason:   "work that began under a lock must not go on under another",
		Applies:  always,
		Explains: isRefusedReentry,
	},
	{
		Name:     ownLease,
		Reason:   "the outer hold was promised its own lease",
		Applies:  always,
		Explains: isKeptLease,
	},
	{
		Name:     ownReentry,
		Reason:   "as for release",
		Applies:  ownOwner,
		Explains: isRaisedCount,
	},
	{
		Name:     anyLonger,
		Reason:   "a late renewal must not cut a longer lease of another hold",
		Applies:  always,
		Explains: isLonger,
	},
	{
		Name:     anyRenewal,
		Reason:   "one spoilt key must not cost other locks their lease",
		Applies:  always,
		Explains: isSpoiltRenewal,
	},
}

// name is the name of the step's lock.
func (o *Outcome) name() string { return o.Step.Names[0] }

// count is how often the step's owner had entered its lock before.
func (o *Outcome) count() (count int64, isLock bool) { return o.Prior.Count(o.name(), o.Step.Owner) }

// unchanged tells whether our side has done nothing to the step's lock.
func (o *Outcome) unchanged() bool {
	return o.Prior.same(o.Ours.After, o.name()) && len(o.Ours.Messages) == 0
}

// isAbout tells whether a difference is about the step's lock and no other key.
func (o *Outcome) isAbout(d Diff) bool { return d.Key == "" || d.Key == o.name() }

// isNamed: a refusal of ours has the holder behind the time left.
func isNamed(o *Outcome, d Diff) bool {
	pair, ok := o.Ours.Reply.([]any)
	if o.Step.Op != Acquire || d.What != "reply" || !ok || len(pair) != 2 || !o.sameTimeLeft(o.Theirs.Reply, pair[0]) {
		return false
	}
	holder, _ := pair[1].(string)
	count, _ := o.Prior.Count(o.name(), holder)
	return holder != o.Step.Owner && count > 0
}

// isLonger: more was left than a renewal of ours would set.
func isLonger(o *Outcome, d Diff) bool {
	before := o.Prior[d.Key].Expires
	count, _ := o.Prior.Count(d.Key, o.Step.Owner)
	return o.Step.Op == Renew && d.What == "ttl" && slices.Contains(o.Step.Names, d.Key) && count > 0 &&
		before == o.Ours.After[d.Key].Expires && before > o.Theirs.After[d.Key].Expires
}

// isLatch: Redisson's release has left a latch with its reply, we have not.
func isLatch(o *Outcome, d Diff) bool {
	return o.isRelease() && d.What == "key" && d.Key == o.Step.latch() && d.Ours == false &&
		isLatchOf(&o.Theirs, d.Key)
}

// isNewLatch is the other way round.
func isNewLatch(o *Outcome, d Diff) bool {
	return o.isRelease() && d.What == "key" && d.Key == o.Step.latch() && d.Theirs == false &&
		isLatchOf(&o.Ours, d.Key)
}

func isLatchOf(seen *Seen, key string) bool {
	latch, reply := seen.After[key], seen.Reply
	n, ok := reply.(int64)
	return ok && latch.Expires > 0 && latch.Value == decimal(n)
}

// isTarget: the release does not aim at one less than the count there is, or was
// sent again; ours then does what the target says. Sent again, ours also sees a
// key that has become something else, where Redisson's sees its latch.
func isTarget(o *Outcome, d Diff) bool {
	s := o.Step
	if s.Op != Free || !o.isAbout(d) {
		return false
	}
	count, isLock := o.count()
	switch {
	case !s.Repeat && (!isLock || s.Target == count-1):
		return false
	case !isLock:
		return o.Ours.Reply == wrongType && o.unchanged()
	}
	return o.isAsReleased(count)
}

// isAsReleased tells whether our side is as the contract of our release says.
func (o *Outcome) isAsReleased(count int64) bool {
	s, reply := o.Step, o.Ours.Reply
	switch {
	case count == 0:
		return reply == nil && o.unchanged()
	case s.Target >= count:
		return reply == int64(0) && o.unchanged()
	case s.Target > 0:
		return reply == int64(0) && o.hasOnly(s.Target) && len(o.Ours.Messages) == 0
	}
	_, held := o.Ours.After[o.name()]
	free := codec.LockChannel(o.name()) + " " + codec.MessageUnlock
	return reply == int64(1) && !held && slices.Equal(o.Ours.Messages, []string{free})
}

// hasOnly tells whether our side differs from what was before by the owner's
// count, if at all; times aside.
func (o *Outcome) hasOnly(count int64) bool {
	before, _ := o.Prior[o.name()].Value.(map[string]string)
	after, _ := o.Ours.After[o.name()].Value.(map[string]string)
	want := maps.Clone(before)
	if want != nil {
		want[o.Step.Owner] = strconv.FormatInt(count, 10)
	}
	return maps.Equal(want, after)
}

// isRelease tells whether a hold is given back, of any kind of lock.
func (o *Outcome) isRelease() bool {
	return o.Step.Op == Free || o.Step.Op == FairFree || o.isFree()
}

// isReentry tells whether ours was the script that only re-enters.
func (o *Outcome) isReentry() bool { return o.Step.Target > 0 && !o.isRelease() }

// isReentryReply: done, ours answers 1 and Redisson's nil.
func isReentryReply(o *Outcome, d Diff) bool {
	count, _ := o.count()
	return o.isReentry() && count > 0 && d.What == "reply" && o.Theirs.Reply == nil && o.Ours.Reply == int64(1)
}

// isRefusedReentry: the owner has no hold that ours could enter again.
func isRefusedReentry(o *Outcome, d Diff) bool {
	count, isLock := o.count()
	return o.isReentry() && o.isAbout(d) && d.What != "messages" && isLock && count == 0 && o.Ours.Reply == nil && o.unchanged()
}

// isKeptLease: more was left than the new lease, and ours has left that as it
// was. A lease of 0 deletes the key in Redisson.
func isKeptLease(o *Outcome, d Diff) bool {
	deleted := d.What == "key" && o.Step.Lease == 0
	if !o.isReentry() || d.Key != o.name() || d.What != "ttl" && !deleted {
		return false
	}
	before, ours := o.Prior[d.Key], o.Ours.After[d.Key]
	kept := before.Expires == ours.Expires && ours.Type == "hash"
	theirs, there := o.Theirs.After[d.Key]
	return kept && (!there || before.Expires == never || before.Expires > theirs.Expires)
}

// isRaisedCount: the re-entry does not aim at one more than the count there is;
// ours then does what the target says.
func isRaisedCount(o *Outcome, d Diff) bool {
	count, _ := o.count()
	return o.isReentry() && count > 0 && d.What == "value" && d.Key == o.name() &&
		o.Step.Target != count+1 && o.hasOnly(max(count, o.Step.Target))
}

// isSpoiltRenewal: a batch with a key of another type fails in Redisson, and
// locks after that key are not renewed. Ours answers 0 for it and 1 for every
// lock that the owner holds.
func isSpoiltRenewal(o *Outcome, d Diff) bool {
	if o.Step.Op != Renew || d.What != "reply" && d.What != "ttl" || !failed(o.Theirs.Reply) {
		return false
	}
	answers, ok := o.Ours.Reply.([]any)
	if !ok || len(answers) != len(o.Step.Names) {
		return false
	}
	for i, name := range o.Step.Names {
		count, _ := o.Prior.Count(name, o.Step.Owner)
		if (answers[i] == int64(1)) != (count > 0) {
			return false
		}
	}
	// A time may differ only for a lock that we have renewed.
	count, _ := o.Prior.Count(d.Key, o.Step.Owner)
	return d.What == "reply" || count > 0
}

// failed: releases that renew one lock at a time reply a list.
func failed(reply any) bool {
	if list, ok := reply.([]any); ok {
		return slices.Contains(list, wrongType)
	}
	return reply == wrongType
}
