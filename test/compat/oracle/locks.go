package oracle

import (
	"strconv"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// The kinds of locks. A fenced lock uses the plain lock's other scripts, and a fair lock uses its renewal.
var (
	Plain = Kind{
		Name: "plain", Operations: []*Operation{Acquire, Free, Force, Renew}, Diverges: lockDiverges,
	}
	Fair = Kind{
		Name: "fair", Operations: []*Operation{FairTry, FairAcquire, FairFree, FairForce, FairGiveUp}, Diverges: fairDiverges,
	}
	Fenced = Kind{
		Name: "fenced", Has: Release.HasFenced, Operations: []*Operation{AcquireToken, AcquireCounted},
		Diverges: fencedDiverges, Also: locksBut(anyHolder, ownReply, ownGone, ownLease, ownReentry),
	}
)

// The operations of a plain lock. Redisson uses the same script to acquire and to reenter a lock.
var (
	Acquire = &Operation{
		Name: "acquire", act: enter, TellsTime: true,
		Theirs: func(_ Release, s Step) Args { return Args{s.Names, []string{decimal(s.Lease), s.Owner}} },
		Ours: func(s Step, shared bool) Call {
			return s.plain(func(l *luasrc.Plain, c *transport.Call) {
				if s.Target == 0 {
					l.Acquire(c, s.Owner, s.Lease)
					return
				}
				l.Reenter(c, s.Owner, s.Lease, s.aim(shared))
			})
		},
	}
	Free = &Operation{
		Name: "release", act: free,
		Theirs: func(r Release, s Step) Args {
			return s.released(r, Args{lockAndChannel(s), []string{protocol.MessageUnlock, decimal(s.Lease), s.Owner}})
		},
		Ours: func(s Step, shared bool) Call {
			return s.plain(func(l *luasrc.Plain, c *transport.Call) {
				if shared {
					l.ReleaseShared(c, s.Latch(), s.Owner, s.Lease)
					return
				}
				l.Release(c, s.Owner, s.Lease, s.Target)
			})
		},
	}
	Force = &Operation{
		Name: "force",
		Theirs: func(r Release, s Step) Args {
			return r.publishing(Args{lockAndChannel(s), []string{protocol.MessageUnlock}})
		},
		Ours: func(s Step, _ bool) Call {
			return s.plain(func(l *luasrc.Plain, c *transport.Call) { l.ForceRelease(c) })
		},
	}
	Renew = &Operation{
		Name: "renew", act: renew, OneByOne: func(r Release) bool { return !r.RenewsBatches() },
		Theirs: func(_ Release, s Step) Args {
			argv := []string{decimal(s.Lease)}
			for range s.Names {
				argv = append(argv, s.Field())
			}
			return Args{s.Names, argv}
		},
		Ours: func(s Step, _ bool) Call {
			return filled(func(c *transport.Call) {
				luasrc.FillRenew(c, len(s.Names), func(i int) (key, owner, lease any) { return s.Names[i], s.Field(), s.Lease })
			})
		},
	}
)

// AcquireToken returns the token. AcquireCounted only counts.
var (
	AcquireToken   = &Operation{Name: "acquire-token", act: enter, Theirs: fencedAcquire, Ours: ourFencedAcquire}
	AcquireCounted = &Operation{Name: "acquire-counted", act: enter, Theirs: fencedAcquire, Ours: ourFencedAcquire}
)

// FairTry is tryLock without a wait.
var (
	FairTry = &Operation{
		Name: "try", act: enter,
		Theirs: func(_ Release, s Step) Args {
			return Args{lockAndQueue(s), []string{decimal(s.Lease), s.Owner, clockNow, decimal(s.Wait)}}
		},
		Ours: fairEntry((*luasrc.Fair).Try),
	}
	FairAcquire = &Operation{
		Name: "acquire", act: enter, TellsTime: true,
		Theirs: func(_ Release, s Step) Args {
			return Args{lockAndQueue(s), []string{decimal(s.Lease), s.Owner, decimal(s.Wait), clockNow}}
		},
		Ours: fairEntry((*luasrc.Fair).Acquire),
	}
	FairFree = &Operation{
		Name: "release", act: free,
		Theirs: func(r Release, s Step) Args {
			argv := []string{protocol.MessageUnlock, decimal(s.Lease), s.Owner, clockNow}
			return s.released(r, Args{lockQueueAndChannel(s), argv})
		},
		Ours: func(s Step, shared bool) Call {
			return s.fair(func(l *luasrc.Fair, c *transport.Call) {
				if shared {
					l.ReleaseShared(c, s.Latch(), s.clock(), s.Owner, s.Lease)
					return
				}
				l.Release(c, s.clock(), s.Owner, s.Lease, s.Target)
			})
		},
	}
	FairForce = &Operation{
		Name: "force",
		Theirs: func(r Release, s Step) Args {
			return r.publishing(Args{lockQueueAndChannel(s), []string{protocol.MessageUnlock, clockNow}})
		},
		Ours: func(s Step, _ bool) Call {
			return s.fair(func(l *luasrc.Fair, c *transport.Call) { l.ForceRelease(c, s.clock()) })
		},
	}
	FairGiveUp = &Operation{
		Name: "give-up", act: giveUp,
		Theirs: func(_ Release, s Step) Args {
			return Args{lockAndQueue(s)[1:], []string{s.Owner, decimal(s.Wait)}}
		},
		Ours: func(s Step, _ bool) Call {
			return s.fair(func(l *luasrc.Fair, c *transport.Call) { l.GiveUp(c, s.clock(), s.Owner, s.Wait) })
		},
	}
)

func (s Step) plain(fill func(l *luasrc.Plain, c *transport.Call)) Call {
	name := s.Names[0]
	l := luasrc.Plain{Key: name, Channel: codec.LockChannel(name), Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&l, c) })
}

func fencedAcquire(_ Release, s Step) Args {
	return Args{[]string{s.Names[0], s.counter()}, []string{decimal(s.Lease), s.Owner}}
}

func ourFencedAcquire(s Step, shared bool) Call {
	l := luasrc.Plain{Key: s.Names[0], Tokens: luasrc.Tokens{Counter: s.counter(), Least: int64(0)}}
	return filled(func(c *transport.Call) {
		if s.Target == 0 {
			l.Acquire(c, s.Owner, s.Lease)
			return
		}
		l.Reenter(c, s.Owner, s.Lease, s.aim(shared))
	})
}

func (s Step) counter() string { return protocol.TokenKey(s.Names[0]) }

func fairEntry(
	take func(l *luasrc.Fair, c *transport.Call, now, owner, wait, lease any),
) func(s Step, shared bool) Call {
	return func(s Step, shared bool) Call {
		return s.fair(func(l *luasrc.Fair, c *transport.Call) {
			if s.Target == 0 {
				take(l, c, s.clock(), s.Owner, s.Wait, s.Lease)
				return
			}
			l.Reenter(c, s.clock(), s.Owner, s.Lease, s.aim(shared))
		})
	}
}

func (s Step) fair(fill func(l *luasrc.Fair, c *transport.Call)) Call {
	keys := lockQueueAndChannel(s)
	l := luasrc.Fair{Key: keys[0], Queue: keys[1], Timeouts: keys[2], Channel: keys[3], Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&l, c) })
}

func lockAndChannel(s Step) []string {
	return []string{s.Names[0], codec.LockChannel(s.Names[0])}
}

func lockAndQueue(s Step) []string {
	name := s.Names[0]
	return []string{name, codec.QueueKey(name), codec.TimeoutKey(name)}
}

func lockQueueAndChannel(s Step) []string {
	return append(lockAndQueue(s), codec.LockChannel(s.Names[0]))
}

func (s Step) aim(shared bool) int64 {
	if shared {
		return 0
	}
	return s.Target
}

func (s Step) released(r Release, a Args) Args {
	a = r.publishing(a)
	if r.HasLatch() {
		a.Keys, a.Argv = append(a.Keys, s.Latch()), append(a.Argv, latchTTL)
	}
	return a
}

func (r Release) publishing(a Args) Args {
	if r.NamesPublish() {
		a.Argv = append(a.Argv, "PUBLISH")
	}
	return a
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
