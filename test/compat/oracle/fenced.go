package oracle

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// Fenced is the plain lock with fencing tokens: what grants it. All else is done by the
// scripts of the plain lock.
var Fenced = Kind{
	Name:       "fenced",
	Has:        Release.HasFenced,
	Operations: []*Operation{AcquireToken, AcquireCounted},
	Diverges:   fencedDiverges,
	Also:       plainBut(anyHolder, ownReply, ownGone, ownLease, ownReentry),
	Cases:      fencedCases(),
}

// AcquireToken takes a lock, or enters it again, and tells the token.
var AcquireToken = &Operation{Name: "acquire-token", Theirs: fencedAcquire, Ours: ourFencedAcquire}

// AcquireCounted is what lock and tryLock of Redisson's fenced lock do: they count, and do not
// tell. Ours is the same call as for [AcquireToken].
var AcquireCounted = &Operation{Name: "acquire-counted", Theirs: fencedAcquire, Ours: ourFencedAcquire}

func fencedAcquire(_ Release, s Step) []Args {
	return []Args{{[]string{s.Names[0], s.counter()}, []string{decimal(s.Lease), s.Owner}}}
}

func ourFencedAcquire(s Step, shared bool) Call {
	l := luasrc.Fenced{Key: s.Names[0], Counter: s.counter(), Least: int64(0)}
	return filled(func(c *transport.Call) {
		switch {
		case s.Target == 0:
			l.Acquire(c, s.Owner, s.Lease)
		case shared: // the count is unknown
			l.Reenter(c, s.Owner, s.Lease, 0)
		default:
			l.Reenter(c, s.Owner, s.Lease, s.Target)
		}
	})
}

// counter is the key of the counter of the step's lock.
func (s Step) counter() string { return codec.TokenKey(s.Names[0]) }

// isFenced tells whether the step grants a lock with tokens.
func (o *Outcome) isFenced() bool { return o.Step.Op == AcquireToken || o.Step.Op == AcquireCounted }
