package oracle

import (
	"strconv"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Plain is the plain, reentrant lock.
var Plain = Kind{
	Name:       "plain",
	Operations: []*Operation{Acquire, Free, Force, Renew},
	Diverges:   plainDiverges,
	Cases:      plainCases(),
}

// Acquire takes a lock or enters it again. Redisson has one script for both.
var Acquire = &Operation{
	Name:      "acquire",
	TellsTime: true,
	Theirs: func(_ Release, s Step) []Args {
		return []Args{{s.Names, []string{decimal(s.Lease), s.Owner}}}
	},
	Ours: func(s Step, shared bool) Call {
		return s.plain(func(l *luasrc.Plain, c *transport.Call) {
			switch {
			case s.Target == 0:
				l.Acquire(c, s.Owner, s.Lease)
			case shared: // the count is unknown
				l.Reenter(c, s.Owner, s.Lease, 0)
			default:
				l.Reenter(c, s.Owner, s.Lease, s.Target)
			}
		})
	},
}

// Free gives a lock back, or one hold of several.
var Free = &Operation{
	Name: "release",
	Theirs: func(r Release, s Step) []Args {
		a := Args{lockAndChannel(s), []string{codec.MessageUnlock, decimal(s.Lease), s.Owner}}
		if r.NamesPublish() {
			a.Argv = append(a.Argv, "PUBLISH")
		}
		if r.HasLatch() {
			a.Keys, a.Argv = append(a.Keys, s.latch()), append(a.Argv, latchTTL)
		}
		return []Args{a}
	},
	Ours: func(s Step, shared bool) Call {
		return s.plain(func(l *luasrc.Plain, c *transport.Call) {
			if shared {
				l.ReleaseShared(c, s.latch(), s.Owner, s.Lease)
				return
			}
			l.Release(c, s.Owner, s.Lease, s.Target)
		})
	},
}

// Force takes a lock from any holder.
var Force = &Operation{
	Name: "force",
	Theirs: func(r Release, s Step) []Args {
		a := Args{lockAndChannel(s), []string{codec.MessageUnlock}}
		if r.NamesPublish() {
			a.Argv = append(a.Argv, "PUBLISH")
		}
		return []Args{a}
	},
	Ours: func(s Step, _ bool) Call {
		return s.plain(func(l *luasrc.Plain, c *transport.Call) { l.ForceRelease(c) })
	},
}

// Renew sets the leases of locks that an owner holds.
var Renew = &Operation{
	Name:     "renew",
	OneByOne: func(r Release) bool { return !r.RenewsBatches() },
	Theirs: func(r Release, s Step) []Args {
		var each []Args
		batch := Args{s.Names, []string{decimal(s.Lease)}}
		for _, name := range s.Names {
			each = append(each, Args{[]string{name}, []string{decimal(s.Lease), s.Owner}})
			batch.Argv = append(batch.Argv, s.Owner)
		}
		if r.RenewsBatches() {
			return []Args{batch}
		}
		return each
	},
	Ours: func(s Step, _ bool) Call {
		return filled(func(c *transport.Call) {
			luasrc.FillRenew(c, len(s.Names), func(i int) (key, owner, lease any) { return s.Names[i], s.Owner, s.Lease })
		})
	},
}

// plain is a call of ours about the step's plain lock.
func (s Step) plain(fill func(l *luasrc.Plain, c *transport.Call)) Call {
	name := s.Names[0]
	l := luasrc.Plain{Key: name, Channel: codec.LockChannel(name), Publish: "PUBLISH"}
	return filled(func(c *transport.Call) { fill(&l, c) })
}

func lockAndChannel(s Step) []string {
	return []string{s.Names[0], codec.LockChannel(s.Names[0])}
}

// latch is the key of the step's latch.
func (s Step) latch() string { return codec.LatchKey(s.Names[0], s.RequestID) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
