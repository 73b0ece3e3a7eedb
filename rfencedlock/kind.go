package rfencedlock

import (
	"fmt"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// counter is the common part of both kinds: the counter's key, and how to read replies with tokens.
type counter struct {
	key   string
	least int64 // the value it must have reached, 0 for any
}

// decode reads the reply to an attempt: a token, or the refusal of a lock without tokens.
func (n *counter) decode(k kind.Hash, answer any) (acquire.Outcome, error) {
	token, granted, err := reply.Token(answer)
	switch {
	case err != nil:
		return acquire.Outcome{}, err
	case granted:
		return acquire.Outcome{Granted: true, Token: token}, nil
	case answer == nil:
		return acquire.Outcome{}, fmt.Errorf("%w: a grant without a token", transport.ErrBadReply)
	}
	return k.Decode(answer)
}

func (n *counter) Reentered(answer any) (held bool, token int64, err error) {
	token, held, err = reply.Token(answer)
	return held, token, err
}

func (n *counter) Fences() bool { return true }

// fenced is the plain lock with tokens, Redisson's getFencedLock. Only its grants differ.
type fenced struct {
	*counter
	*kind.Plain
	grants luasrc.Fenced
}

var _ interface {
	hold.Kind
	hold.Owning
	acquire.Transferable
} = (*fenced)(nil)

func makePlain(n counter) hold.Make {
	return func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		n.key = codec.TokenKey(mapped)
		f := &fenced{&n, kind.NewPlain(e, mapped), luasrc.Fenced{Key: mapped, Counter: n.key, Least: n.least}}
		return f, localqueue.New(e, f)
	}
}

func (f *fenced) Name() string   { return "fenced" }
func (f *fenced) Family() string { return "fenced" }

func (f *fenced) Acquire(c *transport.Call, r *acquire.Request) {
	f.grants.Acquire(c, r.Owner, r.Lease)
}

// Transfer gives the next caller a new token.
func (f *fenced) Transfer(c *transport.Call, r *acquire.Request, from any) {
	f.grants.Pass(c, from, r.Owner, r.Lease)
}

func (f *fenced) Decode(answer any) (acquire.Outcome, error) { return f.decode(f.Hash, answer) }

func (f *fenced) Reenter(c *transport.Call, r *acquire.Request) {
	f.grants.Reenter(c, r.Owner, r.Lease, r.Target)
}

// fair is the fair lock with tokens. Only its grants differ.
type fair struct {
	*counter
	*kind.Fair
	grants luasrc.FencedFair
}

var _ interface {
	hold.Kind
	hold.Owning
	hold.Queueing
	fairqueue.Kind
} = (*fair)(nil)

func makeFair(n counter) hold.Make {
	return func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		n.key = codec.TokenKey(mapped)
		f := &fair{&n, kind.NewFair(e, mapped), luasrc.FencedFair{
			Key: mapped, Queue: codec.QueueKey(mapped), Timeouts: codec.TimeoutKey(mapped), Counter: n.key,
			Channel: codec.LockChannel(mapped), Least: n.least,
		}}
		return f, f.Queues.Strategy(f)
	}
}

func (f *fair) Name() string   { return "fair-fenced" }
func (f *fair) Family() string { return "fair-fenced" }

func (f *fair) Acquire(c *transport.Call, r *acquire.Request) {
	fill := f.grants.Acquire
	if r.Try {
		fill = f.grants.Try
	}
	fill(c, f.Queues.NowMillis(), r.Owner, r.Wait, r.Lease)
}

func (f *fair) Decode(answer any) (acquire.Outcome, error) { return f.decode(f.Hash, answer) }

func (f *fair) Reenter(c *transport.Call, r *acquire.Request) {
	f.grants.Reenter(c, f.Queues.NowMillis(), r.Owner, r.Lease, r.Target)
}

func (f *fair) Dequeue(lock string, r *acquire.Request) error { return f.Queues.Dequeue(f, lock, r) }
func (f *fair) Leave(lock string, r *acquire.Request)         { f.Queues.Leave(f, lock, r) }
