package oracle

import (
	"encoding/hex"
	"strings"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// The kinds without owners: semaphores, semaphores whose permits expire, and latches.
var (
	Semaphore = Kind{
		Name: "semaphore",
		Operations: []*Operation{
			SemaphoreAcquire, SemaphoreRelease, SemaphoreReleaseIf, SemaphoreSet, SemaphoreSetFor, SemaphoreAdd, SemaphoreDrain,
		},
		Diverges: semaphoreDiverges,
	}
	Permits = Kind{
		Name: "permits",
		Operations: []*Operation{
			PermitAcquire, PermitAcquireForEver, PermitRelease, PermitReleaseAll, PermitRenew, PermitLeft,
			PermitsFree, PermitsAll, PermitsOut, PermitsTrySet, PermitsSet, PermitsAdd,
		},
		Diverges: permitDiverges,
	}
	Latch = Kind{Name: "latch", Operations: []*Operation{LatchSet, LatchCountDown, LatchDelete}, Diverges: latchDiverges}
)

const noEnd = 922337203685477

// The operations of a semaphore. SemaphoreReleaseIf does nothing if the semaphore does not exist.
var (
	SemaphoreAcquire = &Operation{
		Name: "acquire", act: take,
		Theirs: func(_ Release, s Step) Args { return Args{s.Names, []string{decimal(s.Permits)}} },
		Ours:   counting(func(l *luasrc.Counter, c *transport.Call, s Step) { l.Acquire(c, s.Permits) }),
	}
	SemaphoreRelease   = &Operation{Name: "release", act: add, Theirs: theirPermits, Ours: ourAdd}
	SemaphoreReleaseIf = &Operation{
		Name: "release-if-there", act: add, Has: Release.HasReleaseIfExists, Theirs: theirPermits,
		Ours: counting(func(l *luasrc.Counter, c *transport.Call, s Step) { l.ReleaseExisting(c, s.Permits) }),
	}
	SemaphoreSet    = &Operation{Name: "set", Theirs: theirPermits, Ours: ourTrySet}
	SemaphoreSetFor = &Operation{
		Name: "set-for", Has: Release.HasSemaphoreTTL,
		Theirs: func(r Release, s Step) Args {
			a := theirPermits(r, s)
			a.Argv = append(a.Argv, decimal(s.Lease))
			return a
		},
		Ours: counting(func(l *luasrc.Counter, c *transport.Call, s Step) { l.TrySet(c, s.Permits, s.Lease) }),
	}
	SemaphoreAdd   = &Operation{Name: "add", act: add, Theirs: theirPermits, Ours: ourAdd}
	SemaphoreDrain = &Operation{
		Name: "drain", act: drain,
		Theirs: func(_ Release, s Step) Args { return Args{s.Names, []string{}} },
		Ours:   counting(func(l *luasrc.Counter, c *transport.Call, _ Step) { l.Drain(c) }),
	}
)

// The operations of a semaphore whose permits expire. Only Redisson has PermitAcquireForEver and PermitLeft, which
// returns the lease of a permit.
var (
	PermitAcquire = &Operation{
		Name: "acquire", act: take, Theirs: theirPermitAcquire,
		Ours: permits(func(l *luasrc.Permits, c *transport.Call, s Step) { l.Acquire(c, s.Now, s.allIDs(), s.Lease) }),
	}
	PermitAcquireForEver = &Operation{
		Name: "acquire-for-ever", act: take,
		Theirs: func(r Release, s Step) Args {
			a := theirPermitAcquire(r, s)
			a.Argv[1] = decimal(noEnd)
			return a
		},
	}
	PermitRelease = &Operation{
		Name: "release", act: give,
		Theirs: func(r Release, s Step) Args {
			n, ends, c := s.permitNames()
			return r.publishing(Args{[]string{n, c, ends}, []string{s.rawID(0), "1", clockNow}})
		},
		Ours: ourPermitRelease,
	}
	PermitReleaseAll = &Operation{
		Name: "release-all", act: giveAll, Has: Release.TakesManyPermits,
		Theirs: func(_ Release, s Step) Args {
			n, ends, c := s.permitNames()
			argv := []string{decimal(int64(len(s.IDs))), clockNow, "PUBLISH"}
			return Args{[]string{n, c, ends}, append(argv, s.rawIDs()...)}
		},
		Ours: ourPermitRelease,
	}
	PermitRenew = &Operation{
		Name: "renew", act: extend,
		Theirs: func(r Release, s Step) Args {
			return r.publishing(Args{s.permitKeys(), []string{s.rawID(0), leaseEnd, clockNow}})
		},
		Ours: func(s Step, _ bool) Call {
			return filled(func(c *transport.Call) {
				luasrc.FillPermitRenew(c, s.Now, 1, func(int) (key, ids, lease any) {
					return s.permitKeys()[1], s.allIDs(), s.Lease
				})
			})
		},
	}
	PermitLeft = &Operation{
		Name: "left", Has: Release.TellsPermitLease,
		Theirs: func(r Release, s Step) Args {
			return r.publishing(Args{s.permitKeys(), []string{s.rawID(0), decimal(noEnd), clockNow}})
		},
	}
	PermitsFree = &Operation{Name: "free", act: countFree, Theirs: theirQuestion, Ours: ourQuestion}
	PermitsAll  = &Operation{
		Name: "all", act: countAll, Has: Release.CountsPermits, Theirs: theirQuestion, Ours: ourQuestion,
	}
	PermitsOut = &Operation{
		Name: "out", act: countOut, Has: Release.CountsPermits, Theirs: theirQuestion, Ours: ourQuestion,
	}
	PermitsTrySet = &Operation{Name: "try-set", Theirs: theirPermits, Ours: ourTrySet}
	PermitsSet    = &Operation{
		Name: "set", act: setAll, Has: Release.CountsPermits,
		Theirs: func(r Release, s Step) Args {
			n, ends, c := s.permitNames()
			return r.publishing(Args{[]string{n, c, ends}, []string{decimal(s.Permits)}})
		},
		Ours: permits(func(l *luasrc.Permits, c *transport.Call, s Step) { l.Set(c, s.Permits) }),
	}
	PermitsAdd = &Operation{Name: "add", act: add, Theirs: theirPermits, Ours: ourAdd}
)

// The operations of a latch.
var (
	LatchSet = &Operation{
		Name: "set",
		Theirs: func(r Release, s Step) Args {
			return r.publishing(Args{latchKeys(s), []string{protocol.MessageClosed, decimal(s.Permits)}})
		},
		Ours: latching(func(l *luasrc.Latch, c *transport.Call, s Step) { l.Set(c, s.Permits) }),
	}
	LatchCountDown = &Operation{
		Name: "count-down",
		Theirs: func(r Release, s Step) Args {
			return r.publishing(Args{latchKeys(s), []string{protocol.MessageOpened}})
		},
		Ours: latching(func(l *luasrc.Latch, c *transport.Call, _ Step) { l.CountDown(c) }),
	}
	LatchDelete = &Operation{
		Name: "delete",
		Theirs: func(r Release, s Step) Args {
			return r.publishing(Args{latchKeys(s), []string{protocol.MessageClosed}})
		},
		Ours: latching(func(l *luasrc.Latch, c *transport.Call, _ Step) { l.Delete(c) }),
	}
)

var (
	ourAdd           = counting(func(l *luasrc.Counter, c *transport.Call, s Step) { l.Add(c, s.Permits) })
	ourTrySet        = counting(func(l *luasrc.Counter, c *transport.Call, s Step) { l.TrySet(c, s.Permits, 0) })
	ourPermitRelease = permits(func(l *luasrc.Permits, c *transport.Call, s Step) {
		l.Release(c, s.Now, s.allIDs(), luasrc.IDSize)
	})
	ourQuestion = permits(func(l *luasrc.Permits, c *transport.Call, s Step) { l.Count(c, s.Now) })
)

func theirPermits(r Release, s Step) Args {
	n, _, c := s.permitNames()
	return r.publishing(Args{[]string{n, c}, []string{decimal(s.Permits)}})
}

func theirPermitAcquire(r Release, s Step) Args {
	a := Args{s.permitKeys(), []string{decimal(int64(len(s.IDs))), leaseEnd}}
	if !r.TakesManyPermits() {
		a.Argv = append(a.Argv, s.rawID(0), clockNow, decimal(noEnd))
		return a
	}
	a.Argv = append(a.Argv, clockNow, decimal(noEnd), "PUBLISH")
	a.Argv = append(a.Argv, s.rawIDs()...)
	return a
}

func theirQuestion(r Release, s Step) Args {
	return r.publishing(Args{s.permitKeys(), []string{clockNow}})
}

func counting(fill func(l *luasrc.Counter, c *transport.Call, s Step)) func(Step, bool) Call {
	return func(s Step, _ bool) Call {
		n, _, channel := s.permitNames()
		l := luasrc.Counter{Key: n, Channel: channel, Publish: "PUBLISH"}
		return filled(func(c *transport.Call) { fill(&l, c, s) })
	}
}

func permits(fill func(l *luasrc.Permits, c *transport.Call, s Step)) func(Step, bool) Call {
	return func(s Step, _ bool) Call {
		n, ends, channel := s.permitNames()
		l := luasrc.Permits{Counter: luasrc.Counter{Key: n, Channel: channel, Publish: "PUBLISH"}, Permits: ends}
		return filled(func(c *transport.Call) { fill(&l, c, s) })
	}
}

func latching(fill func(l *luasrc.Latch, c *transport.Call, s Step)) func(Step, bool) Call {
	return func(s Step, _ bool) Call {
		keys := latchKeys(s)
		l := luasrc.Latch{Key: keys[0], Channel: keys[1], Publish: "PUBLISH"}
		return filled(func(c *transport.Call) { fill(&l, c, s) })
	}
}

func latchKeys(s Step) []string {
	name := s.Names[0]
	return []string{name, "redisson_countdownlatch__channel__{" + name + "}"}
}

func (s Step) permitNames() (count, ends, channel string) {
	name := s.Names[0]
	return name, braced(name) + ":timeout", "redisson_sc:" + braced(name)
}

func (s Step) permitKeys() []string {
	n, ends, c := s.permitNames()
	return []string{n, ends, c}
}

// RawID returns the server's 16-byte form of a permit ID, or "".
func RawID(id string) string {
	raw, err := hex.DecodeString(id)
	if err != nil {
		return ""
	}
	return string(raw)
}

func (s Step) rawID(i int) string {
	if i >= len(s.IDs) {
		return ""
	}
	return RawID(s.IDs[i])
}

func (s Step) rawIDs() (all []string) {
	for i := range s.IDs {
		all = append(all, s.rawID(i))
	}
	return all
}

func (s Step) allIDs() string { return strings.Join(s.rawIDs(), "") }
