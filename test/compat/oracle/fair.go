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
	Ours: fairEntry((*luasrc.Fair).Try),
}

// FairAcquire takes a fair lock, enters it again, or queues its owner.
var FairAcquire = &Operation{
	Name:      "acquire",
	TellsTime: true,
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{lockAndQueue(s), []string{decimal(s.Lease), s.Owner, decimal(s.Wait), clockNow}}}
	},
	Ours:  fairEntry((*luasrc.Fair).Acquire),
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
		return s.fair(func(l *luasrc.Fair, c *transport.Call) {
			if shared {
				l.ReleaseShared(c, s.latch(), s.clock(), s.Owner, s.Lease)
				return
			}
			l.Release(c, s.clock(), s.Owner, s.Lease, s.Target)
		})
	},
}

// FairForce takes a fair lock from any holder.
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
		return s.fair(func(l *luasrc.Fair, c *transport.Call) { l.ForceRelease(c, s.clock()) })
	},
}

// FairGiveUp takes an owner out of the queue. Only ours knows the time: it wakes the next
// ones.
var FairGiveUp = &Operation{
	Name: "give-up",
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{lockAndQueue(s)[1:], []string{s.Owner, decimal(s.Wait)}}}
	},
	Ours: func(s Step, _ bool) Call {
		return s.fair(func(l *luasrc.Fair, c *transport.Call) { l.GiveUp(c, s.clock(), s.Owner, s.Wait) })
	},
}

// fairEntry is our call that takes a fair lock, as given, or enters it again.
func fairEntry(take func(l *luasrc.Fair, c *transport.Call, now, owner, wait, lease any)) func(s Step, shared bool) Call {
	return func(s Step, shared bool) Call {
		return s.fair(func(l *luasrc.Fair, c *transport.Call) {
			switch {
			case s.Target == 0:
				take(l, c, s.clock(), s.Owner, s.Wait, s.Lease)
			case shared: // the count is unknown
				l.Reenter(c, s.clock(), s.Owner, s.Lease, 0)
			default:
				l.Reenter(c, s.clock(), s.Owner, s.Lease, s.Target)
			}
		})
	}
}

// fair is a call of ours about the step's fair lock.
func (s Step) fair(fill func(l *luasrc.Fair, c *transport.Call)) Call {
	name := s.Names[0]
	l := luasrc.Fair{
		Key: name, Queue: codec.QueueKey(name), Timeouts: codec.TimeoutKey(name), Channel: codec.LockChannel(name),
		Publish: "PUBLISH",
	}
	return filled(func(c *transport.Call) { fill(&l, c) })
}

func lockAndQueue(s Step) []string {
	name := s.Names[0]
	return []string{name, codec.QueueKey(name), codec.TimeoutKey(name)}
}

func lockQueueAndChannel(s Step) []string {
	return append(lockAndQueue(s), codec.LockChannel(s.Names[0]))
}

// checkScore: an owner that is queued gets the reply, the wait and the time as deadline;
// one that was queued before keeps the one it has.
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
	if line, ok := o.queueState(); ok {
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
