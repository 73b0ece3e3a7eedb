package oracle

import (
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
)

const (
	anyHolder  = "acquire: the holder's name"
	anyLonger  = "renewal: time to live"
	ownLatch   = "release: latch"
	ownCount   = "release: count"
	newLatch   = "release of a shared owner: latch before 3.24"
	ownReply   = "re-entry: reply"
	ownGone    = "re-entry: missing lock"
	ownLease   = "re-entry: time to live"
	ownReentry = "re-entry: count"
	anyRenewal = "renewal: key of another type in the batch"
)

func always(Release, Ours) bool            { return true }
func ownOwner(_ Release, o Ours) bool      { return !o.Shared }
func sharedOwner(_ Release, o Ours) bool   { return o.Shared }
func ownAndLatch(r Release, o Ours) bool   { return !o.Shared && r.HasLatch() }
func sharedNoLatch(r Release, o Ours) bool { return o.Shared && !r.HasLatch() }

var lockDiverges = []Divergence{
	{anyHolder, "a refused caller learns the holder without another request", always, isNamed},
	{ownLatch, "a lost reply is resolved by querying the server, without the extra calls for a latch", ownAndLatch,
		isLatch},
	{ownCount, "a duplicate or late release cannot free a hold that is in use", ownOwner, isTarget},
	{newLatch, "a retry is safe next to every Redisson release", sharedNoLatch, isNewLatch},
	{ownReply, "nil means not held, as in the other scripts", always, isReentryReply},
	{ownGone, "work that began under one lock must not continue under another", always, isRefusedReentry},
	{ownLease, "the outer hold keeps its own lease", always, isKeptLease},
	{ownReentry, "as for release", ownOwner, isRaisedCount},
	{anyLonger, "a late renewal must not shorten another hold's lease", always, isLonger},
	{anyRenewal, "one wrong key must not cost other locks their lease", always, isSpoiltRenewal},
}

func locks(names ...string) []Divergence {
	return slices.DeleteFunc(slices.Clone(lockDiverges),
		func(d Divergence) bool { return !slices.Contains(names, d.Name) })
}

func locksBut(names ...string) []Divergence {
	return slices.DeleteFunc(slices.Clone(lockDiverges), func(d Divergence) bool { return slices.Contains(names, d.Name) })
}

var fencedDiverges = append([]Divergence{
	{"token: a grant", "scripts round numbers from 2^53 on, but not text", hasFenced,
		isFencedGrant},
	{"token: a refusal", "for a lock without a TTL Redisson replies [-1, -1], which its client treats as success",
		hasFenced, isFencedRefusal},
	{"token: re-entry of a missing lock", "as for the plain lock, and no token is issued", hasFenced, isFencedGone},
}, locks(ownLease, ownReentry)...)

func hasFenced(r Release, _ Ours) bool { return r.HasFenced() }

// fairDiverges begins with the differences between releases, because after a script has failed, nothing else is
// comparable.
var fairDiverges = append([]Divergence{
	{
		"acquire: last waiter without a deadline, before 3.45", "later releases do the same",
		func(r Release, _ Ours) bool { return !r.BearsLastless() }, isOldLast,
	},
	{
		"first waiter without a deadline, before 3.31", "later releases do the same",
		func(r Release, _ Ours) bool { return !r.BearsHeadless() }, isOldHead,
	},
	{
		"acquire: already queued, before 3.32", "a waiter would sleep past the end of a dead holder's lease",
		func(r Release, _ Ours) bool { return !r.TellsQueuedLeft() }, isOldQueued,
	},
	{
		"acquire: reply when refused", "one waiter polls for its process and wakes the next one; a removed waiter notices it",
		always, isFairRefusal,
	},
	{"release: the lock is free", "a lost hold is not reported as released", always, isAnswerForFreeLock},
	{
		"give up: the lock is free", "the leaving waiter may have received the only message",
		always, isPassedOn,
	},
}, locksBut(anyHolder, anyLonger, anyRenewal)...)

func (o *Outcome) name() string { return o.Step.Names[0] }

func (o *Outcome) count() int64 {
	count, _ := o.Prior.Count(o.name(), o.Step.Field())
	return count
}

func (o *Outcome) counts(want int64) bool {
	count, _ := o.Ours.After.Count(o.name(), o.Step.Field())
	return count == want
}

func (o *Outcome) field(name string) string {
	fields, _ := o.Prior[o.name()].Value.(map[string]string)
	return fields[name]
}

func (o *Outcome) untouched() bool {
	changed := func(key string) bool { return !o.Prior.same(o.Ours.After, key) }
	return len(o.Ours.Messages) == 0 && !slices.ContainsFunc(keysOf(o.Prior, o.Ours.After), changed)
}

func (o *Outcome) isAbout(d Diff) bool {
	return d.Key == "" || slices.Contains(lockAndQueue(o.Step), d.Key) || o.isOwnKey(d.Key)
}

func (o *Outcome) isOwnKey(key string) bool {
	return slices.ContainsFunc(o.Step.Names, func(name string) bool { return isHoldKey(key, name, o.Step.Owner) })
}

func (o *Outcome) isAgain() bool { return o.Step.Op.act == enter && o.Step.Target > 0 }

func isNamed(o *Outcome, d Diff) bool {
	pair, ok := o.Ours.Reply.([]any)
	return o.Step.Op.act == enter && d.What == "reply" && ok && len(pair) == 2 &&
		o.sameTimeLeft(o.Theirs.Reply, pair[0]) && o.isHolder(pair[1])
}

func (o *Outcome) isHolder(text any) bool {
	holder, _ := text.(string)
	return holder != o.Step.Field() && holder != protocol.ModeField && o.field(holder) != ""
}

func isLatch(o *Outcome, d Diff) bool {
	return o.Step.Op.act == free && d.What == "key" && d.Ours == false && isLatchOf(&o.Theirs, d.Key, o.Step)
}

func isNewLatch(o *Outcome, d Diff) bool {
	return o.Step.Op.act == free && d.What == "key" && d.Theirs == false && isLatchOf(&o.Ours, d.Key, o.Step)
}

func isLatchOf(seen *Seen, key string, s Step) bool {
	latch := seen.After[key]
	return key == s.Latch() && latch.Expires > 0 && latch.Value == fmt.Sprint(seen.Reply)
}

// isTarget explains differences after a release that was repeated or whose target is not one below the count.
func isTarget(o *Outcome, d Diff) bool {
	s, count := o.Step, o.count()
	_, there := o.Ours.After[o.name()]
	refused := o.Ours.Reply == wrongType || o.Ours.Reply == nil && s.Op.role != nil && o.mode() == ""
	done := o.counts(min(count, s.Target)) || s.isRead(free) && !there || refused && o.untouched()
	return s.Op.act == free && o.isAbout(d) && (s.Repeat || count > 0 && s.Target != count-1) && done
}

func isReentryReply(o *Outcome, d Diff) bool {
	holds := o.count() > 0 || o.Step.Op.role != nil
	return o.isAgain() && holds && d.What == "reply" && o.Theirs.Reply == nil && o.Ours.Reply == int64(1)
}

func isRefusedReentry(o *Outcome, d Diff) bool {
	_, isLock := o.Prior.Count(o.name(), "")
	return o.isAgain() && o.isAbout(d) && d.What != "messages" && isLock && (o.count() == 0 || o.Step.Op.role != nil) &&
		o.Ours.Reply == nil && o.Prior.same(o.Ours.After, o.name()) && len(o.Ours.Messages) == 0
}

func isKeptLease(o *Outcome, d Diff) bool {
	deleted := d.What == "key" && o.Step.Lease == 0
	if !o.isAgain() || d.Key != o.name() || d.What != "ttl" && !deleted {
		return false
	}
	ours, there := o.Ours.After[d.Key]
	return there && (deleted || ours.Expires == never || ours.Expires > o.Theirs.After[d.Key].Expires)
}

func isRaisedCount(o *Outcome, d Diff) bool {
	count := o.count()
	aboutCount := d.What == "value" && d.Key == o.name() || d.What != "value" && o.isOwnKey(d.Key)
	return o.isAgain() && (count > 0 || o.Step.Op.role != nil) && aboutCount && o.Step.Target != count+1 &&
		o.counts(max(count, o.Step.Target))
}

func isLonger(o *Outcome, d Diff) bool {
	return o.Step.Op.act == renew && d.What == "ttl" && (slices.Contains(o.Step.Names, d.Key) || o.isOwnKey(d.Key)) &&
		o.lasts(d.Key) && o.Prior[d.Key].Expires > o.Theirs.After[d.Key].Expires
}

// lasts reports whether our key still expires at the same time. It may expire later, by at most the script's running
// time, because the script sets the TTL again.
func (o *Outcome) lasts(key string) bool {
	late := o.Ours.After[key].Expires - o.Prior[key].Expires
	return late >= 0 && late <= o.Elapsed
}

func isSpoiltRenewal(o *Outcome, d Diff) bool {
	list, _ := o.Theirs.Reply.([]any)
	failed := o.Theirs.Reply == wrongType || slices.Contains(list, wrongType)
	return o.Step.Op.act == renew && failed && (d.What == "reply" || d.What == "ttl")
}

func isFencedGrant(o *Outcome, d Diff) bool {
	return d.What == "reply" && fmt.Sprint(o.Ours.Reply) == o.Ours.After[o.Step.counter()].Value
}

func isFencedRefusal(o *Outcome, d Diff) bool {
	left := o.Theirs.Reply
	if pair, ok := left.([]any); ok && len(pair) == 2 && pair[1] == int64(-1) {
		left = pair[0]
	}
	pair, ok := o.Ours.Reply.([]any)
	return d.What == "reply" && ok && len(pair) == 2 && o.sameTimeLeft(left, pair[0]) && o.isHolder(pair[1])
}

func isFencedGone(o *Outcome, d Diff) bool {
	counter := o.Step.counter()
	if d.Key == counter {
		d.Key = o.name()
	}
	return isRefusedReentry(o, d) && o.Prior.same(o.Ours.After, counter)
}

func (o *Outcome) waiters() (queue []string, deadlines map[string]float64) {
	queue, _ = o.Prior[codec.QueueKey(o.name())].Value.([]string)
	deadlines, _ = o.Prior[codec.TimeoutKey(o.name())].Value.(map[string]float64)
	return queue, deadlines
}

var scriptFailed any = Failure("ERR")

// isOldLast: a duplicate entry has no deadline once the first one has been evicted.
func isOldLast(o *Outcome, _ Diff) bool {
	queue, deadlines := o.waiters()
	if o.Theirs.Reply != scriptFailed || !o.Step.Op.TellsTime || len(queue) == 0 {
		return false
	}
	last := len(queue) - 1
	_, has := deadlines[queue[last]]
	return !has || slices.Index(queue, queue[last]) < last
}

// isOldHead is like isOldLast, but checks the first live waiter.
func isOldHead(o *Outcome, _ Diff) bool {
	queue, deadlines := o.waiters()
	lacks := func(waiter string) bool { _, has := deadlines[waiter]; return !has }
	twice := len(slices.Compact(slices.Sorted(slices.Values(queue)))) < len(queue)
	return o.Theirs.Reply == scriptFailed && o.Step.Op.act != giveUp && (twice || slices.ContainsFunc(queue, lacks))
}

func isOldQueued(o *Outcome, d Diff) bool {
	_, deadlines := o.waiters()
	deadline, queued := deadlines[o.Step.Owner]
	return queued && o.Step.Op.TellsTime && d.What == "reply" && o.Theirs.Reply == int64(deadline)-o.Step.Wait-o.Step.Now
}

func isFairRefusal(o *Outcome, d Diff) bool {
	list, _ := o.Ours.Reply.([]any)
	if d.What != "reply" || o.Step.Op.act != enter || len(list) < 2 || list[1] != "" && !o.isHolder(list[1]) {
		return false
	}
	if !o.Step.Op.TellsTime {
		return o.Theirs.Reply == int64(1) && len(list) == 2
	}
	return len(list) == 4 && o.sameTimeLeft(o.Theirs.Reply, list[0])
}

func isAnswerForFreeLock(o *Outcome, d Diff) bool {
	_, locked := o.Prior[o.name()]
	_, latched := o.Prior[o.Step.Latch()]
	isReply := d.What == "reply" && d.Theirs == int64(1) && d.Ours == int64(2)
	isLatch := d.What == "value" && d.Key == o.Step.Latch() && d.Theirs == "1" && d.Ours == "2"
	return o.Step.Op.act == free && !locked && !latched && (isReply || isLatch)
}

func isPassedOn(o *Outcome, d Diff) bool {
	_, locked := o.Prior[o.name()]
	return o.Step.Op.act == giveUp && d.What == "messages" && !locked && len(o.Theirs.Messages) == 0
}
