package rfencedlock

import (
	"fmt"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hashlock"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// counter is what both kinds have beside the lock without tokens: the key that counts grants,
// and the replies that have tokens. It is safe for concurrent use.
type counter struct {
	key   string
	least int64 // what it must have reached, 0 for anything
}

func (n *counter) itsCounter() *counter { return n }

// decode reads the reply of an attempt: a token, or a refusal as that of a lock without.
func (n *counter) decode(k hashlock.Kind, answer any) (acquire.Outcome, error) {
	token, granted, err := reply.Token(answer)
	switch {
	case err != nil:
		return acquire.Outcome{}, err
	case granted:
		return acquire.Outcome{Granted: true, Token: token}, nil
	case answer == nil:
		return acquire.Outcome{}, fmt.Errorf("%w: a grant without a token", codec.ErrBadReply)
	}
	return k.Decode(answer)
}

// Reentered is part of hold.Reentrant.
func (n *counter) Reentered(answer any) (bool, error) {
	_, held, err := reply.Token(answer)
	return held, err
}

// Token is part of hold.Fencing.
func (n *counter) Token(answer any) (int64, error) {
	token, _, err := reply.Token(answer)
	return token, err
}

// fenced is the kind of the plain lock with tokens: Redisson's getFencedLock. All but the
// grants is as for the plain lock.
type fenced struct {
	*counter
	hashlock.Kind
	channel string
	scripts luasrc.Plain
	grants  luasrc.Fenced
}

var _ interface {
	hold.Kind
	hold.Fencing
	hold.Shareable
	hold.Forcible
	hold.Inspectable
	hold.Replicable
	localqueue.Kind
} = (*fenced)(nil)

// makePlain returns the hold.Make of the plain lock with tokens.
func makePlain(n counter) hold.Make {
	return func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		n.key = codec.TokenKey(mapped)
		channel := codec.LockChannel(mapped)
		f := &fenced{
			&n, hashlock.New(mapped), channel,
			luasrc.Plain{Key: mapped, Channel: channel, Publish: e.Publish()},
			luasrc.Fenced{Key: mapped, Counter: n.key, Least: n.least},
		}
		return f, localqueue.New(e, f)
	}
}

// Name is part of acquire.Waitable.
func (f *fenced) Name() string { return "fenced" }

// Family is part of hold.Kind.
func (f *fenced) Family() string { return "fenced" }

// Channel is part of acquire.Waitable. All waiters share one.
func (f *fenced) Channel(any) string { return f.channel }

// Acquire is part of acquire.Waitable.
func (f *fenced) Acquire(c *transport.Call, r *acquire.Request) {
	f.grants.Acquire(c, r.Owner, r.Lease)
}

// Transfer is part of localqueue.Kind: a lock that is transferred has another token.
func (f *fenced) Transfer(c *transport.Call, r *acquire.Request, from any) {
	f.grants.Pass(c, from, r.Owner, r.Lease)
}

// Decode is part of acquire.Waitable.
func (f *fenced) Decode(answer any) (acquire.Outcome, error) { return f.decode(f.Kind, answer) }

// Reenter is part of hold.Reentrant.
func (f *fenced) Reenter(c *transport.Call, r *acquire.Request) {
	f.grants.Reenter(c, r.Owner, r.Lease, r.Target)
}

// Reentered is part of hold.Reentrant.
func (f *fenced) Reentered(answer any) (bool, error) { return f.counter.Reentered(answer) }

// Release is part of hold.Kind.
func (f *fenced) Release(c *transport.Call, r *acquire.Request) {
	f.scripts.Release(c, r.Owner, r.Lease, r.Target)
}

// ReleaseShared is part of hold.Shareable.
func (f *fenced) ReleaseShared(c *transport.Call, r *acquire.Request, latch string) {
	f.scripts.ReleaseShared(c, latch, r.Owner, r.Lease)
}

// ForceRelease is part of hold.Forcible.
func (f *fenced) ForceRelease(c *transport.Call) { f.scripts.ForceRelease(c) }

// Inspect is part of hold.Inspectable: there is no queue on the server.
func (f *fenced) Inspect(c *transport.Call, _, _ int64) { f.scripts.Inspect(c) }
