// Package anyclient is a Redlatch transport over any Redis client. It runs each call on a connection of
// the client and subscribes with package pubsub. Copy it.
package anyclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/transport"
)

const most, patience = 64, 6 * time.Second // connections; for a dial, or a reply

// Conn is a connection of your client's.
type Conn interface {
	// Do sends a command exactly once and waits for the reply: nil, int64, string, []byte or
	// []any. An error reply is a *transport.ServerError, also inside an array; any other error
	// means that the connection is broken.
	Do(command string, args ...any) (any, error)
	// Close closes the connection and ends a pending Do.
	Close() error
}

// Transport is a transport.Transport to one master.
type Transport struct {
	*pubsub.Subscriber // Subscribe
	dial               func(context.Context) (Conn, error)
	ctx                context.Context //nolint:containedctx // ends with Close
	end                context.CancelCauseFunc
	room               chan struct{}  // one entry per call that is not urgent
	idle               chan Conn      // connections without a call
	begin              sync.Mutex     // held by Start, and by Close until no call can start
	calls              sync.WaitGroup // calls in progress
}

// New returns a transport. It closes the connections made by dial and listen.Dial.
func New(dial func(context.Context) (Conn, error), listen pubsub.Config) *Transport {
	t := &Transport{Subscriber: pubsub.New(listen), dial: dial, room: make(chan struct{}, most), idle: make(chan Conn, most)}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	return t
}

// PublishCommand returns PUBLISH: this is not a cluster.
func (t *Transport) PublishCommand() string { return "PUBLISH" }

// Start runs the call and done on a new goroutine.
func (t *Transport) Start(call *transport.Call, done transport.Done) {
	t.begin.Lock()
	defer t.begin.Unlock()
	if t.ctx.Err() != nil {
		go done(nil, t.failed(transport.ErrNotSent, nil))
		return
	}
	t.calls.Go(func() { done(t.run(call)) })
}

func (t *Transport) run(call *transport.Call) (any, error) {
	if !call.Urgent { // renewals and releases do not wait for other calls
		t.room <- struct{}{}
		defer func() { <-t.room }()
	}
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	conn, err := Conn(nil), error(nil)
	select {
	case conn = <-t.idle:
	default:
		conn, err = t.dial(ctx)
	}
	if err != nil {
		return nil, t.failed(transport.ErrNotSent, err)
	}
	if !call.Claim(0) { // its caller has stopped waiting
		t.keep(conn)
		return nil, transport.ErrNotSent
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	reply, err := ask(conn, call)
	if err == nil || errors.As(err, new(*transport.ServerError)) {
		t.keep(conn)
		return reply, err
	}
	_ = conn.Close()
	t.hangUp() // the idle connections may also be broken
	return nil, t.failed(transport.ErrUncertain, err)
}

func ask(conn Conn, call *transport.Call) (any, error) {
	if call.Script == nil {
		return conn.Do(call.Command, call.Args...)
	}
	args := append([]any{call.Script.SHA(), call.NumKeys}, call.Args...)
	reply, err := conn.Do("EVALSHA", args...)
	if transport.IsCode(err, "NOSCRIPT") {
		args[0] = call.Script.Text()
		return conn.Do("EVAL", args...)
	}
	return reply, err
}

func (t *Transport) keep(conn Conn) {
	select {
	case t.idle <- conn:
	default: // enough are idle
		_ = conn.Close()
	}
}

func (t *Transport) hangUp() {
	for len(t.idle) > 0 {
		select {
		case conn := <-t.idle:
			_ = conn.Close()
		default: // a concurrent call was faster
		}
	}
}

func (t *Transport) failed(class, why error) error {
	return fmt.Errorf("%w: %w", class, cmp.Or(context.Cause(t.ctx), why))
}

// Close ends all calls and subscriptions.
func (t *Transport) Close() error {
	t.begin.Lock()
	t.end(transport.ErrClosed)
	t.begin.Unlock()
	t.calls.Wait()
	t.hangUp()
	return t.Subscriber.Close()
}
