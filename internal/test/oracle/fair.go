package oracle

import (
	"fmt"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Fair is the fair lock. Its leases are renewed as those of the plain lock.
var Fair = Kind{
	Name:       "fair",
	Operations: fairOperations(),
	Diverges:   fairDiverges,
	Cases:      fairCases(),
}

// FairTry takes a fair lock or enters it again, and does not wait for it: the call
// of tryLock without a waiting time.
var FairTry = &Operation{
	Name: "try",
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{lockAndQueue(s), []string{decimal(s.Lease), s.Owner, clockNow, decimal(s.Wait)}}}
	},
	Ours: fairEntry(luasrc.FairTry),
}

// FairAcquire takes a fair lock, enters it again, or queues its owner.
var FairAcquire = &Operation{
	Name:      "acquire",
	TellsTime: true,
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{lockAndQueue(s), []string{decimal(s.Lease), s.Owner, decimal(s.Wait), clockNow}}}
	},
	Ours:  fairEntry(luasrc.FairAcquire),
	Check: checkScore,
}

// FairFree gives a fair lock back, or one hold of several.
var FairFree = &Operation{
	Name: "release",
	Theirs: func(r Release, s Step) []Args {
		a := Args{lockQueueAndChannel(s), []string{codec.MessageUnlock, decimal(s.Lease), s.Owner, clockNow}}
		if r.NamesPublish() {
			a.Argv = append(a.Argv, "PUBLISH")
		}
		if r.HasLatch() {
			a.Keys, a.Argv = append(a.Keys, s.latch()), append(a.Argv, latchTTL)
		}
		return []Args{a}
	},
	Ours: func(s Step, shared bool) Call {
		if shared {
			return Call{
				luasrc.FairReleaseShared, append(lockQueueAndChannel(s), s.latch()),
				[]any{s.clock(), s.Owner, s.Lease, "PUBLISH", codec.MessageUnlock, latchFor},
			}
		}
		return Call{
			luasrc.FairRelease, lockQueueAndChannel(s),
			[]any{s.clock(), s.Owner, s.Lease, s.Target, "PUBLISH", codec.MessageUnlock},
		}
	},
}

// FairForce takes a fair lock from whoever holds it.
var FairForce = &Operation{
	Name: "force",
	Theirs: func(r Release, s Step) []Args {
		a := Args{lockQueueAndChannel(s), []string{codec.MessageUnlock, clockNow}}
		if r.NamesPublish() {
			a.Argv = append(a.Argv, "PUBLISH")
		}
		return []Args{a}
	},
	Ours: func(s Step, _ bool) Call {
		return Call{luasrc.FairForceRelease, lockQueueAndChannel(s), []any{s.clock(), "PUBLISH", codec.MessageUnlock}}
	},
}

// FairGiveUp takes an owner out of the queue. Only ours knows the time: it tells
// those who are next.
var FairGiveUp = &Operation{
	Name: "give-up",
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{lockAndQueue(s)[1:], []string{s.Owner, decimal(s.Wait)}}}
	},
	Ours: func(s Step, _ bool) Call {
		return Call{
			luasrc.FairGiveUp, lockQueueAndChannel(s),
			[]any{s.clock(), s.Owner, s.Wait, "PUBLISH", codec.MessageUnlock},
		}
	},
}

// fairEntry is our call that takes a fair lock, by a script, or enters it again.
func fairEntry(script *transport.Script) func(s Step, shared bool) Call {
	return func(s Step, shared bool) Call {
		target := s.Target
		switch {
		case target == 0:
			return Call{script, lockAndQueue(s), []any{s.clock(), s.Owner, s.Wait, s.Lease, "1"}}
		case shared: // nobody knows the count
			target = 0
		}
		return Call{luasrc.FairReenter, lockAndQueue(s), []any{s.clock(), s.Owner, s.Lease, target}}
	}
}

func lockAndQueue(s Step) []string {
	name := s.Names[0]
	return []string{name, codec.QueueKey(name), codec.TimeoutKey(name)}
}

func lockQueueAndChannel(s Step) []string {
	return append(lockAndQueue(s), codec.LockChannel(s.Names[0]))
}

// checkScore: who is queued gets the reply, the wait and the time as deadline; who
// was queued before keeps the one it has.
func checkScore(o *Outcome, seen *Seen) error {
	reply := seen.Reply
	if list, ok := reply.([]any); ok {
		reply = list[0]
	}
	left, refused := reply.(int64)
	if !refused || o.isReentry() {
		return nil
	}
	want := float64(left + o.Step.Wait + o.Step.Now)
	if line, ok := o.line(); ok {
		if before, queued := line.deadlines[o.Step.Owner]; queued {
			want = before
		}
	}
	scores, _ := seen.After[codec.TimeoutKey(o.name())].Value.(map[string]float64)
	if scores[o.Step.Owner] != want {
		return fmt.Errorf("deadline %f, want %f", scores[o.Step.Owner], want)
	}
	return nil
}
