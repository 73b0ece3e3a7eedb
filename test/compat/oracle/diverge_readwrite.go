package oracle

import (
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/protocol"
)

func spoils(r Release, _ Ours) bool { return r.SpoilsReadRenewals() }

func renewsAll(r Release, _ Ours) bool { return !r.RenewsOwnReaders() }

var rwDiverges = slices.Concat([]Divergence{
	{"read/write release: missing lock", "as for the plain lock: nothing was released", always,
		isGoneRelease},
}, lockDiverges, []Divergence{
	{"read/write: hash of another kind", "a read/write lock does not exclude other kinds and would corrupt their hash",
		always, isForeignRefused},
	{"read/write: lock without a time to live", "the other holders keep their own leases", always,
		isEndlessKept},
	{"write re-entry: time to live", "a crashed writer would keep the lock for the sum of its leases", always,
		isLeaseNotAdded},
	{"read re-entry: the keys of holds", "the remaining holds keep their leases, in any order of release", always,
		isKeysRaised},
	{"read release: reply", "the owner's hold has ended, even if others read", ownOwner, isReadReply},
	{"read release: time to live when holds remain", "Redisson deletes the newest key even if an older hold ends", always,
		isKeysKept},
	{"read release: holds with missing keys", "it is unknown which hold ends, and a remaining one is alive",
		sharedOwner, isHoldRevived},
	{"read release: a writer's time to live", "a writer that also reads must not lose its lease", always,
		isWriterUncut},
	{"write release: shared owner", "the leases of the owner's holds in other clients are unknown",
		sharedOwner, isSharedWriterUncut},
	{"write release: time to live when holds remain", "the writer's reads keep their own leases", always,
		isWriteLeft},
	{"downgrade: message", "waiting readers may enter immediately", always, isDowngradeTold},
	{"downgrade: dead readers", "a dead reader must not block writers", always, isDowngradeFreed},
	{"downgrade: time to live", "a crashed reader blocks writers for its own lease only", always, isReadsLease},
	{
		"read renewal: reader whose holds have expired",
		"a hold without its key can be lost at any time, so its holder must be notified", always, isOverRead,
	},
	{"read renewal: other readers, before 4.4", "another reader's watchdog must not keep a dead reader alive", renewsAll,
		isOtherReader},
	{"read renewal: several keys, 3.44 to 3.52", "Redisson's script confuses keys or fails", spoils, isSpoiltReads},
})

func (o *Outcome) mode() string { return o.field(protocol.ModeField) }

func (o *Outcome) isDirect(isRole func(s Step, a act) bool) bool {
	return isRole(o.Step, free) && (o.Shared || !o.Step.Repeat && o.Step.Target == o.count()-1)
}

func (o *Outcome) isLockTime(d Diff) bool { return d.What == "ttl" && d.Key == o.name() }

func isHoldKey(key, name, owner string) bool {
	rest, ok := strings.CutPrefix(key, braced(name)+":")
	return ok && strings.HasPrefix(rest, owner) && strings.Contains(rest, ":rwlock_timeout:")
}

func isForeignRefused(o *Outcome, d Diff) bool {
	return o.Step.Op.act == enter && o.Step.Target == 0 && o.Prior[o.name()].Type == "hash" && o.mode() == "" &&
		o.isAbout(d) &&
		o.Ours.Reply == wrongType && o.untouched()
}

// isEndlessKept explains differences for a lock without a TTL. Our script sets the TTL of the longest read hold or,
// while the lock is held for writing, no TTL. Redisson's script sets the reader's lease, and a lease of 0 deletes the
// lock.
func isEndlessKept(o *Outcome, d Diff) bool {
	fields, _ := o.Prior[d.Key].Value.(map[string]string)
	grants := o.Step.Op.act == enter && o.Step.Target == 0 || o.Step.isRead(renew)
	if !grants || !slices.Contains(o.Step.Names, d.Key) || o.Prior[d.Key].Expires != never {
		return false
	}
	deleted := d.What == "key" && d.Ours == true && o.Step.Lease == 0
	if fields[protocol.ModeField] == protocol.ModeWrite {
		return o.Ours.After[d.Key].Expires == never && (d.What == "ttl" || deleted)
	}
	return deleted || d.What == "ttl" && o.Ours.After[d.Key].Expires > o.Theirs.After[d.Key].Expires
}

func isLeaseNotAdded(o *Outcome, d Diff) bool {
	ours := o.Ours.After[d.Key].Expires
	return o.Step.isWrite(enter) && o.count() > 0 && o.isLockTime(d) && o.Theirs.Reply == nil &&
		ours != never && ours < o.Theirs.After[d.Key].Expires
}

func isKeysRaised(o *Outcome, d Diff) bool {
	longer := d.What == "ttl" && o.Ours.After[d.Key].Expires > o.Theirs.After[d.Key].Expires
	return o.isAgain() && o.Step.isRead(enter) && o.Ours.Reply == int64(1) && o.isOwnKey(d.Key) &&
		(longer || d.What == "key" && d.Ours == true)
}

func isGoneRelease(o *Outcome, d Diff) bool {
	latch := d.Key == o.Step.Latch()
	if _, before := o.Prior[o.Step.Latch()]; o.Step.Op.act != free || before {
		return false
	}
	if _, there := o.Prior[o.name()]; !there && o.Shared {
		return o.Ours.Reply == int64(2) && (d.What == "reply" || d.What == "value" && latch)
	}
	return o.mode() == "" && o.Ours.Reply == nil && o.untouched() &&
		(d.Key == "" || d.What == "key" && latch && d.Ours == false)
}

func isReadReply(o *Outcome, d Diff) bool {
	return o.isDirect(Step.isRead) && d.What == "reply" && o.Step.Target == 0 &&
		o.Theirs.Reply == int64(0) && o.Ours.Reply == int64(1)
}

func isKeysKept(o *Outcome, d Diff) bool {
	return o.isDirect(Step.isRead) && o.count() > 1 && d.What == "ttl" &&
		(o.isOwnKey(d.Key) || d.Key == o.name() && o.mode() == protocol.ModeRead)
}

func isHoldRevived(o *Outcome, d Diff) bool {
	holds := o.holds(o.name())
	if !o.isDirect(Step.isRead) || len(holds) < 2 || o.isOver(o.name()) || !slices.Contains(holds[:len(holds)-1], false) {
		return false
	}
	switch freed := o.Theirs.Reply == int64(1) && o.Ours.Reply == int64(0); d.What {
	case "key":
		return d.Ours == true && (o.isOwnKey(d.Key) || d.Key == o.name() && freed)
	case "value":
		return freed && d.Key == o.Step.Latch()
	case "reply", "messages":
		return freed && len(o.Ours.Messages) == 0
	}
	return false
}

func isWriterUncut(o *Outcome, d Diff) bool {
	ours := o.Ours.After[d.Key].Expires
	return o.isDirect(Step.isRead) && o.isLockTime(d) && o.mode() == protocol.ModeWrite &&
		(ours == never || ours >= o.Prior[d.Key].Expires)
}

func isSharedWriterUncut(o *Outcome, d Diff) bool {
	return o.isDirect(Step.isWrite) && o.count() > 1 && o.isLockTime(d) &&
		o.Ours.After[d.Key].Expires == o.Prior[d.Key].Expires
}

func isWriteLeft(o *Outcome, d Diff) bool {
	return o.isDirect(Step.isWrite) && o.count() > 1 && o.isLockTime(d) &&
		o.Ours.After[d.Key].Expires > o.Theirs.After[d.Key].Expires
}

func (o *Outcome) isDowngrade() bool {
	fields, _ := o.Prior[o.name()].Value.(map[string]string)
	return o.isDirect(Step.isWrite) && o.mode() == protocol.ModeWrite && o.count() == 1 && len(fields) > 2
}

func isDowngradeTold(o *Outcome, d Diff) bool {
	want := protocol.ReadWriteChannel(o.name()) + " " + protocol.MessageWriterLeft
	return o.isDowngrade() && d.What == "messages" && len(o.Theirs.Messages) == 0 &&
		slices.Equal(o.Ours.Messages, []string{want})
}

func isDowngradeFreed(o *Outcome, d Diff) bool {
	return o.isDowngrade() && d.What == "key" && d.Key == o.name() && d.Ours == false
}

func isReadsLease(o *Outcome, d Diff) bool {
	longest := int64(never)
	for key, e := range o.Prior {
		if isHoldKey(key, o.name(), "") {
			longest = max(longest, e.Expires)
		}
	}
	return o.isDowngrade() && o.isLockTime(d) && longest != never && o.Ours.After[d.Key].Expires-longest <= o.Elapsed
}

func isOtherReader(o *Outcome, d Diff) bool {
	return o.Step.isRead(renew) && d.What == "ttl" && slices.ContainsFunc(o.Step.Names, func(name string) bool {
		fields, _ := o.Prior[name].Value.(map[string]string)
		return isHoldKey(d.Key, name, "") && (!o.isOwnKey(d.Key) && o.lasts(d.Key) ||
			len(fields) == 1 && o.Prior.same(o.Theirs.After, d.Key))
	})
}

func isSpoiltReads(o *Outcome, d Diff) bool {
	_, failed := o.Theirs.Reply.(Failure)
	return o.Step.isRead(renew) && (d.What == "reply" && failed || d.What == "ttl")
}

func isOverRead(o *Outcome, d Diff) bool {
	if o.Step.isRead(renew) && d.What == "ttl" {
		return slices.Contains(o.Step.Names, d.Key) && o.isOver(d.Key) && o.Prior.same(o.Ours.After, d.Key)
	}
	theirs, ok1 := o.Theirs.Reply.([]any)
	ours, ok2 := o.Ours.Reply.([]any)
	if !o.Step.isRead(renew) || d.What != "reply" || !ok1 || !ok2 {
		return false
	}
	for i, name := range o.Step.Names {
		if theirs[i] != ours[i] && (!o.isOver(name) || ours[i] != int64(0)) {
			return false
		}
	}
	return true
}

func (o *Outcome) holds(name string) (all []bool) {
	count, _ := o.Prior.Count(name, o.Step.Owner)
	for k := range count {
		_, there := o.Prior[protocol.HoldKey(name, o.Step.Owner, k+1)]
		all = append(all, there)
	}
	return all
}

func (o *Outcome) isOver(name string) bool {
	holds := o.holds(name)
	return len(holds) > 0 && !slices.Contains(holds, true)
}
