package rfencedlock

import (
	"fmt"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/kind"
	"github.com/redlatch/redlatch/internal/localqueue"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

type counter struct{}

func tokens(mapped string, least int64) luasrc.Tokens {
	return luasrc.Tokens{Counter: protocol.TokenKey(mapped), Least: least}
}

func (counter) decode(k kind.Hash, answer any) (acquire.Outcome, error) {
	token, granted, err := reply.Token(answer)
	switch {
	case err != nil:
		return acquire.Outcome{}, err
	case granted:
		return acquire.Outcome{Granted: true, Token: token}, nil
	case answer == nil:
		return acquire.Outcome{}, fmt.Errorf("%w: grant without a token", transport.ErrBadReply)
	}
	return k.Decode(answer)
}

func (counter) Reentered(answer any) (held bool, token int64, err error) {
	token, held, err = reply.Token(answer)
	return held, token, err
}

func (counter) Fences() bool { return true }

type fenced struct {
	counter
	*kind.Plain
}

var _ interface {
	hold.Kind
	hold.Owning
	acquire.Transferable
} = (*fenced)(nil)

func makePlain(least int64) hold.Make {
	return func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		f := &fenced{Plain: kind.NewPlain(e, mapped, tokens(mapped, least))}
		return f, localqueue.New(e, f)
	}
}

func (f *fenced) Name() string   { return "fenced" }
func (f *fenced) Family() string { return "fenced" }

func (f *fenced) Decode(answer any) (acquire.Outcome, error) { return f.decode(f.Hash, answer) }

type fair struct {
	counter
	*kind.Fair
}

var _ interface {
	hold.Kind
	hold.Owning
	hold.Queueing
	fairqueue.Kind
} = (*fair)(nil)

func makeFair(least int64) hold.Make {
	return func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		f := &fair{Fair: kind.NewFair(e, mapped, tokens(mapped, least))}
		return f, f.Queues.Strategy(f)
	}
}

func (f *fair) Name() string   { return "fair-fenced" }
func (f *fair) Family() string { return "fair-fenced" }

func (f *fair) Decode(answer any) (acquire.Outcome, error) { return f.decode(f.Hash, answer) }

func (f *fair) Dequeue(lock string, r *acquire.Request) error { return f.Queues.Dequeue(f, lock, r) }
func (f *fair) Leave(lock string, r *acquire.Request)         { f.Queues.Leave(f, lock, r) }
