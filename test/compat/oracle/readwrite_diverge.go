package oracle

import (
	"slices"

	"github.com/redlatch/redlatch/codec"
)

// The names of the read/write lock's divergences beside those that it shares with the plain
// lock. Ours is held to its contract in every step (see isAsContracted), so that each of these
// only says where the contract differs from Redisson.
const (
	rwForeign    = "read/write: a hash of another kind"
	rwEndless    = "read/write: a lock without a time to live"
	rwGone       = "read/write release: a lock that is gone"
	rwWriteMore  = "write re-entry: time to live"
	rwKeys       = "read re-entry: the keys of holds"
	rwReadReply  = "read release: reply"
	rwKeysLeft   = "read release: time to live when holds remain"
	rwRevived    = "read release: holds whose keys are gone"
	rwUncut      = "read release: a writer's time to live"
	rwWriteLeft  = "write release: time to live when holds remain"
	rwWriteUncut = "write release: an owner that travels"
	rwDowngrade  = "downgrade: message"
	rwDeadReads  = "downgrade: dead readers"
	rwReadsLast  = "downgrade: time to live"
	rwOthers     = "read renewal: other readers, before 4.4"
	rwSpoilt     = "read renewal: several keys, 3.44 to 3.52"
	rwOver       = "read renewal: a reader whose holds are over"
)

func ownerOf44(r Release, _ Ours) bool   { return !r.RenewsOwnReaders() }
func sharedOwner(_ Release, o Ours) bool { return o.Shared }
func spoils(r Release, _ Ours) bool      { return r.SpoilsReadRenewals() }

var rwDiverges = []Divergence{
	{Name: anyHolder, Reason: "a refused caller learns the holder without another request", Applies: always, Explains: isWriterNamed},
	{Name: rwForeign, Reason: "a read/write lock excludes no lock of another kind, and would spoil it", Applies: always, Explains: isForeignRefused},
	{Name: rwEndless, Reason: "the others that have it are owed their own leases", Applies: always, Explains: isEndlessKept},
	{Name: ownReply, Reason: "nil means not held, as in the other scripts", Applies: always, Explains: isRWReentryReply},
	{Name: ownGone, Reason: "work that began under a lock must not go on under another", Applies: always, Explains: isRWReentryRefused},
	{Name: ownLease, Reason: "the outer hold was promised its own lease", Applies: always, Explains: isRWKeptLease},
	{Name: ownReentry, Reason: "as for release", Applies: ownOwner, Explains: isRWRaisedCount},
	{Name: rwWriteMore, Reason: "leases that add up keep a crashed writer's lock for their sum", Applies: always, Explains: isLeaseNotAdded},
	{Name: rwKeys, Reason: "whichever hold goes first, the others keep what they are owed", Applies: always, Explains: isKeysRaised},
	{Name: rwGone, Reason: "as for the plain lock: nothing was released, so none is told", Applies: always, Explains: isGoneRelease},
	{Name: ownLatch, Reason: "a lost reply is resolved by asking the server, which saves the calls that keep the latch", Applies: ownAndLatch, Explains: isLatch},
	{Name: newLatch, Reason: "sent again, it is harmless beside every Redisson", Applies: sharedNoLatch, Explains: isNewLatch},
	{Name: ownCount, Reason: "sent twice or late, it cannot free a hold that is still in use", Applies: ownOwner, Explains: isRWTarget},
	{Name: rwReadReply, Reason: "the owner's hold is over, whoever else reads", Applies: ownOwner, Explains: isReadReply},
	{Name: rwKeysLeft, Reason: "Redisson deletes the newest key, whichever hold goes", Applies: always, Explains: isKeysKept},
	{Name: rwRevived, Reason: "which hold goes is not known, and one that stays is alive", Applies: sharedOwner, Explains: isHoldRevived},
	{Name: rwUncut, Reason: "a writer that has read inside must not lose its lease", Applies: always, Explains: isWriterUncut},
	{Name: rwWriteUncut, Reason: "what other clients' holds of the owner are owed is not known", Applies: sharedOwner, Explains: isSharedWriterUncut},
	{Name: rwWriteLeft, Reason: "the writer's reads were promised their own leases", Applies: always, Explains: isWriteLeft},
	{Name: rwDowngrade, Reason: "readers that wait may come in at once", Applies: always, Explains: isDowngradeTold},
	{Name: rwDeadReads, Reason: "a reader that is dead must not keep writers out", Applies: always, Explains: isDowngradeFreed},
	{Name: rwReadsLast, Reason: "a reader that crashes keeps writers out for its own lease only", Applies: always, Explains: isReadsLease},
	{Name: anyLonger, Reason: "a late renewal must not cut a longer lease of another hold", Applies: always, Explains: isRWLonger},
	{Name: rwOver, Reason: "a hold without its key can be lost at any time, and its holder must hear of it", Applies: always, Explains: isOverRead},
	{Name: anyRenewal, Reason: "one spoilt key must not cost other locks their lease", Applies: always, Explains: isRWSpoiltRenewal},
	{Name: rwOthers, Reason: "a dead reader must not live on by another's watchdog", Applies: ownerOf44, Explains: isOtherReader},
	{Name: rwSpoilt, Reason: "the script takes a key for another, or fails", Applies: spoils, Explains: isSpoiltReads},
}

// field is a field of the lock's hash before the step; it is empty when there is none.
func (o *Outcome) field(name string) string {
	fields, _ := o.Prior[o.name()].Value.(map[string]string)
	return fields[name]
}

func (o *Outcome) isHash() bool { return o.Prior[o.name()].Type == "hash" }

func (o *Outcome) mode() string { return o.field(codec.ModeField) }

// rwCount is how often the step's owner had entered the lock before, in the step's role.
func (o *Outcome) rwCount() int64 {
	count, _ := o.Prior.Count(o.name(), o.Step.Field())
	return count
}

// untouched tells whether our side has done nothing at all.
func (o *Outcome) untouched() bool {
	return len(o.Ours.Messages) == 0 && !slices.ContainsFunc(o.keys(), func(k string) bool { return !o.Prior.same(o.Ours.After, k) })
}

// keys are all keys that were there before, or are on our side.
func (o *Outcome) keys() (all []string) {
	for key := range o.either(o.Prior, o.Ours.After) {
		all = append(all, key)
	}
	return all
}

// isOfOwner tells whether a difference is about the lock, or a key of a read hold of the step's
// owner.
func (o *Outcome) isOfOwner(d Diff) bool { return o.isAbout(d) || o.isOwnKey(d.Key) }

func (o *Outcome) isOwnKey(key string) bool {
	return slices.ContainsFunc(o.Step.Names, func(name string) bool { return isHoldKey(key, name, o.Step.Owner) })
}

func (o *Outcome) isAcquire() bool {
	return o.Step.Op.act == rwAcquire
}

func (o *Outcome) isAgain() bool { return o.isAcquire() && o.Step.Target > 0 }

func (o *Outcome) isFree() bool { return o.Step.Op.act == rwFree }

// isDirect tells whether a release is to do what Redisson's does: to lower the count by one.
func (o *Outcome) isDirect() bool {
	return o.isFree() && (o.Shared || !o.Step.Repeat && o.Step.Target == o.rwCount()-1)
}

// isWriterNamed: a refusal of ours has the writer behind the time left.
func isWriterNamed(o *Outcome, d Diff) bool {
	pair, ok := o.Ours.Reply.([]any)
	return o.isAcquire() && d.What == "reply" && ok && o.mode() == codec.ModeWrite &&
		o.sameTimeLeft(o.Theirs.Reply, pair[0]) && pair[1] != o.Step.writer()
}

// isForeignRefused: the hash has no mode, as that of a plain lock, and ours leaves it alone.
func isForeignRefused(o *Outcome, d Diff) bool {
	return o.isAcquire() && o.Step.Target == 0 && o.isHash() && o.mode() == "" && o.isOfOwner(d) &&
		o.Ours.Reply == wrongType && o.untouched()
}

// isEndlessKept: a reader that comes in, or that is renewed, gives a lock that never expires what
// the longest read has left; while it is written it stays as it is. In Redisson it lasts for
// the reader's lease; for no time at all if that is 0.
func isEndlessKept(o *Outcome, d Diff) bool {
	fields, _ := o.Prior[d.Key].Value.(map[string]string)
	grants := o.isAcquire() && o.Step.Target == 0 || o.Step.isRead(rwRenew)
	if !grants || !slices.Contains(o.Step.Names, d.Key) || o.Prior[d.Key].Expires != never {
		return false
	}
	if fields[codec.ModeField] == codec.ModeWrite {
		return o.Ours.After[d.Key].Expires == never && (d.What == "ttl" || d.What == "key" && o.Step.Lease == 0)
	}
	return d.What == "ttl" && o.Ours.After[d.Key].Expires > o.Theirs.After[d.Key].Expires || d.What == "key" && d.Ours == true && o.Step.Lease == 0
}

func isRWReentryReply(o *Outcome, d Diff) bool {
	return o.isAgain() && d.What == "reply" && o.Theirs.Reply == nil && o.Ours.Reply == int64(1)
}

// isRWReentryRefused: the owner has no hold that ours could enter again.
func isRWReentryRefused(o *Outcome, d Diff) bool {
	return o.isAgain() && o.isOfOwner(d) && d.What != "messages" && o.Ours.Reply == nil && o.untouched()
}

// isRWKeptLease: more was left than the lease, or an own read has more, and ours keeps that.
// With a lease of 0 the key is deleted in Redisson.
func isRWKeptLease(o *Outcome, d Diff) bool {
	deleted := d.What == "key" && o.Step.Lease == 0
	if !o.isAgain() || o.Ours.Reply != int64(1) || d.Key != o.name() || d.What != "ttl" && !deleted {
		return false
	}
	ours, theirs := o.Ours.After[d.Key].Expires, o.Theirs.After[d.Key].Expires
	return ours == never || deleted || ours > theirs
}

// isRWRaisedCount: the re-entry does not aim at one more than the count there is.
func isRWRaisedCount(o *Outcome, d Diff) bool {
	return o.isAgain() && o.Step.Target != o.rwCount()+1 && (d.What == "value" && d.Key == o.name() || d.What != "value" && o.isOwnKey(d.Key))
}

// isLeaseNotAdded: Redisson adds the lease to what is left.
func isLeaseNotAdded(o *Outcome, d Diff) bool {
	ours := o.Ours.After[d.Key].Expires
	return o.Step.isWrite(rwAcquire) && o.rwCount() > 0 && d.What == "ttl" && d.Key == o.name() &&
		o.Theirs.Reply == nil && ours != never && ours < o.Theirs.After[d.Key].Expires
}

// isKeysRaised: all keys of the owner's holds last for the longest.
func isKeysRaised(o *Outcome, d Diff) bool {
	return o.isAgain() && o.Step.isRead(rwAcquire) && o.Ours.Reply == int64(1) && o.isOwnKey(d.Key) &&
		(d.What == "ttl" && o.Ours.After[d.Key].Expires > o.Theirs.After[d.Key].Expires || d.What == "key" && d.Ours == true)
}

// isRWTarget: the release does not aim at one less than the count there is, or was sent again.
func isRWTarget(o *Outcome, d Diff) bool {
	return o.isFree() && !o.Shared && (o.Step.Repeat || o.Step.Target != o.rwCount()-1) && o.isOfOwner(d)
}

// isGoneRelease: Redisson answers as if it had released (before 3.45), or that the owner has no
// hold, and sends a message in either case. An owner of our own leaves it at the answer; one
// that travels sends it, too, and has an answer of its own.
func isGoneRelease(o *Outcome, d Diff) bool {
	latch := d.Key == o.Step.latch()
	if _, before := o.Prior[o.Step.latch()]; !o.isFree() || before {
		return false // Redisson answers what it has answered before
	}
	if _, there := o.Prior[o.name()]; !there && o.Shared {
		return o.Ours.Reply == int64(2) && (d.What == "reply" || d.What == "value" && latch)
	}
	return o.mode() == "" && o.Ours.Reply == nil && o.untouched() && (d.Key == "" || d.What == "key" && latch && d.Ours == false)
}

// isReadReply: others have the lock still, but the owner is no reader any more.
func isReadReply(o *Outcome, d Diff) bool {
	return o.isDirect() && o.Step.isRead(rwFree) && d.What == "reply" && o.Step.Target == 0 &&
		o.Theirs.Reply == int64(0) && o.Ours.Reply == int64(1)
}

// isKeysKept: the owner reads still, and the keys of its holds last for the lease.
func isKeysKept(o *Outcome, d Diff) bool {
	return o.isDirect() && o.Step.isRead(rwFree) && o.rwCount() > 1 && d.What == "ttl" &&
		(o.isOwnKey(d.Key) || d.Key == o.name() && o.mode() == codec.ModeRead)
}

// isHoldRevived: of the holds that remain the first have no keys, and the others' leases go on
// in their place. Redisson frees the lock when the key that it deletes was the last.
func isHoldRevived(o *Outcome, d Diff) bool {
	if !o.isDirect() || !o.Step.isRead(rwFree) || o.rwCount() < 2 || o.isOver(o.name()) || !o.hasGap() {
		return false
	}
	switch freed := o.Theirs.Reply == int64(1) && o.Ours.Reply == int64(0); d.What {
	case "key":
		return d.Ours == true && (o.isOwnKey(d.Key) || d.Key == o.name() && freed)
	case "value":
		return freed && d.Key == o.Step.latch()
	case "reply", "messages":
		return freed && len(o.Ours.Messages) == 0
	}
	return false
}

// hasGap tells whether one of the owner's holds but the last has no key.
func (o *Outcome) hasGap() bool {
	for k := range o.rwCount() - 1 {
		if _, there := o.Prior[o.Step.HoldKey(k+1)]; !there {
			return true
		}
	}
	return false
}

// isWriterUncut: the lock is written, and lasts as long as before at least.
func isWriterUncut(o *Outcome, d Diff) bool {
	before, ours := o.Prior[d.Key].Expires, o.Ours.After[d.Key].Expires
	return o.isDirect() && o.Step.isRead(rwFree) && d.What == "ttl" && d.Key == o.name() && o.mode() == codec.ModeWrite &&
		(ours == never || ours >= before)
}

// isSharedWriterUncut: the lock lasts as long as before.
func isSharedWriterUncut(o *Outcome, d Diff) bool {
	return o.isDirect() && o.Step.isWrite(rwFree) && o.rwCount() > 1 && d.What == "ttl" && d.Key == o.name() &&
		o.Ours.After[d.Key].Expires == o.Prior[d.Key].Expires
}

// isWriteLeft: the lock lasts as long as the longest of the reads.
func isWriteLeft(o *Outcome, d Diff) bool {
	return o.isDirect() && o.Step.isWrite(rwFree) && o.rwCount() > 1 && d.What == "ttl" && d.Key == o.name() &&
		o.Ours.After[d.Key].Expires > o.Theirs.After[d.Key].Expires
}

// isDowngrade tells whether a writer leaves that has readers beside it, or what is left of them.
func (o *Outcome) isDowngrade() bool {
	fields, _ := o.Prior[o.name()].Value.(map[string]string)
	return o.isDirect() && o.Step.isWrite(rwFree) && o.mode() == codec.ModeWrite && o.rwCount() == 1 && len(fields) > 2
}

func isDowngradeTold(o *Outcome, d Diff) bool {
	want := codec.ReadWriteChannel(o.name()) + " " + codec.MessageWriterLeft
	return o.isDowngrade() && d.What == "messages" && len(o.Theirs.Messages) == 0 && slices.Equal(o.Ours.Messages, []string{want})
}

func isDowngradeFreed(o *Outcome, d Diff) bool {
	return o.isDowngrade() && d.What == "key" && d.Key == o.name() && d.Ours == false
}

// isReadsLease: the lock lasts as long as the longest read that its readers have.
func isReadsLease(o *Outcome, d Diff) bool {
	longest := int64(never)
	for key, e := range o.Prior {
		if isHoldKey(key, o.name(), "") {
			longest = max(longest, e.Expires)
		}
	}
	late := o.Ours.After[d.Key].Expires - longest
	return o.isDowngrade() && d.What == "ttl" && d.Key == o.name() && late <= o.Elapsed && longest != never
}

// lasts tells whether a key on our side lasts as long as before: a hold that a lock lasts for may
// get what it has left again, which is later by what the script took (see Redates).
func (o *Outcome) lasts(key string) bool {
	late := o.Ours.After[key].Expires - o.Prior[key].Expires
	return late >= 0 && late <= o.Elapsed
}

func (o *Outcome) isRenewal() bool { return o.Step.Op.act == rwRenew }

// isRWLonger: more was left than a renewal of ours would set.
func isRWLonger(o *Outcome, d Diff) bool {
	before := o.Prior[d.Key].Expires
	return o.isRenewal() && d.What == "ttl" && (slices.Contains(o.Step.Names, d.Key) || o.isOwnKey(d.Key)) &&
		o.lasts(d.Key) && before > o.Theirs.After[d.Key].Expires
}

// isOtherReader: Redisson renews the keys of all readers, and ours leaves those of others. With
// a single field, as a plain lock has, Redisson renews none.
func isOtherReader(o *Outcome, d Diff) bool {
	return o.Step.isRead(rwRenew) && d.What == "ttl" && slices.ContainsFunc(o.Step.Names, func(name string) bool {
		fields, _ := o.Prior[name].Value.(map[string]string)
		return isHoldKey(d.Key, name, "") && (!o.isOwnKey(d.Key) && o.lasts(d.Key) ||
			len(fields) == 1 && o.Prior.same(o.Theirs.After, d.Key))
	})
}

// isSpoiltReads: with several locks, or several holds, Redisson renews other keys than it
// should, or none.
func isSpoiltReads(o *Outcome, d Diff) bool {
	failed, _ := o.Theirs.Reply.(Failure)
	return o.Step.isRead(rwRenew) && (d.What == "reply" && failed != "" || d.What == "ttl")
}

// isOverRead: the owner stands in the hash, but no key keeps its holds alive.
func isOverRead(o *Outcome, d Diff) bool {
	if !o.Step.isRead(rwRenew) || d.What != "reply" && d.What != "ttl" {
		return false
	}
	if d.What == "ttl" {
		return slices.Contains(o.Step.Names, d.Key) && o.isOver(d.Key) && o.Prior.same(o.Ours.After, d.Key)
	}
	theirs, ok1 := o.Theirs.Reply.([]any)
	ours, ok2 := o.Ours.Reply.([]any)
	for i, name := range o.Step.Names {
		if !ok1 || !ok2 || theirs[i] != ours[i] && (!o.isOver(name) || ours[i] != int64(0)) {
			return false
		}
	}
	return true
}

// isOver tells whether the step's owner has counts, and no key, in a lock.
func (o *Outcome) isOver(name string) bool {
	count, _ := o.Prior.Count(name, o.Step.Owner)
	for k := range count {
		if _, alive := o.Prior[codec.HoldKey(name, o.Step.Owner, k+1)]; alive {
			return false
		}
	}
	return count > 0
}

// isRWSpoiltRenewal: a batch with a key of another type fails in Redisson.
func isRWSpoiltRenewal(o *Outcome, d Diff) bool {
	return o.isRenewal() && failed(o.Theirs.Reply) && (d.What == "reply" || d.What == "ttl")
}
