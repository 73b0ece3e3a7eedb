package mux

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/transport"
)

// Starter is where calls can be started: a Mux, any transport.Transport. What follows is for
// code that starts calls and waits for their replies without deadlines, retries and resolution
// of its own. Locks run their calls through internal/engine.
type Starter interface {
	// Start is that of transport.Transport.
	Start(call *transport.Call, done transport.Done)
}

// Pending is a call that was started. One goroutine waits for it.
type Pending struct {
	call *transport.Call
	came chan outcome // cap 1
}

type outcome struct {
	reply any
	err   error
}

// Begin starts call on a connection, or whatever else calls can be started on.
func Begin(on Starter, call *transport.Call) *Pending {
	p := &Pending{call: call, came: make(chan outcome, 1)}
	on.Start(call, func(reply any, err error) { p.came <- outcome{reply, err} })
	return p
}

// Wait returns the outcome of the call, once, also when ctx has ended meanwhile. When ctx
// ends before it, the call is abandoned, and the error wraps transport.ErrNotSent or
// transport.ErrUncertain with ctx's cause.
func (p *Pending) Wait(ctx context.Context) (any, error) {
	select {
	case o := <-p.came:
		return o.reply, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-p.came:
		return o.reply, o.err
	default:
	}
	class := transport.ErrUncertain
	if p.call.Abandon() {
		class = transport.ErrNotSent
	}
	return nil, fmt.Errorf("%w: %w", class, context.Cause(ctx))
}

// Name returns what was called: a command or a script.
func (p *Pending) Name() string { return p.call.Name() }

// Abandon says that nothing waits for the call any more.
func (p *Pending) Abandon() { p.call.Abandon() }

// Do starts call and waits for its outcome: see [Pending.Wait].
func Do(ctx context.Context, on Starter, call *transport.Call) (any, error) {
	return Begin(on, call).Wait(ctx)
}

// Ping returns nil when the server answers. It sends PING, before calls that are not
// urgent.
func Ping(ctx context.Context, on Starter) error {
	_, err := Do(ctx, on, &transport.Call{Command: "PING", Urgent: true})
	if transport.IsCode(err, "NOPERM") {
		return nil // only a server that has let the user in refuses it this
	}
	return err
}
