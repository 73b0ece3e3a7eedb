package mux

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/transport"
)

// Starter starts calls. The functions below don't set deadlines, retry or resolve calls.
type Starter interface {
	Start(call *transport.Call, done transport.Done)
}

// Pending is a call that was started. Only one goroutine may wait for it.
type Pending struct {
	call *transport.Call
	came chan outcome // cap 1
}

type outcome struct {
	reply any
	err   error
}

// Begin starts call.
func Begin(on Starter, call *transport.Call) *Pending {
	p := &Pending{call: call, came: make(chan outcome, 1)}
	on.Start(call, func(reply any, err error) { p.came <- outcome{reply, err} })
	return p
}

// Wait returns the call's outcome. It may be called only once. If ctx ends first, Wait abandons the call, and the
// error wraps transport.ErrNotSent or transport.ErrUncertain, and the cause of ctx.
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

// Name returns the name of the call's command or script.
func (p *Pending) Name() string { return p.call.Name() }

// Abandon abandons the call.
func (p *Pending) Abandon() { p.call.Abandon() }

// Do starts call and waits for its outcome.
func Do(ctx context.Context, on Starter, call *transport.Call) (any, error) {
	return Begin(on, call).Wait(ctx)
}

// Ping sends an urgent PING.
func Ping(ctx context.Context, on Starter) error {
	_, err := Do(ctx, on, &transport.Call{Command: "PING", Urgent: true})
	if transport.IsCode(err, "NOPERM") {
		return nil // the server has authenticated the user, who just may not run PING
	}
	return err
}
