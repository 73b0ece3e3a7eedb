// Package anyclient is a Redlatch transport that works with any Redis client. It runs each call on
// a connection of that client and subscribes with package pubsub. Copy it into your program.
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

const most, patience = 64, 6 * time.Second // maximum number of connections; time limit for a dial or a reply

// Conn is a connection of your Redis client.
type Conn interface {
	// Do sends a command exactly once and waits for the reply: nil, int64, string, []byte or []any.
	// An error reply, even inside an array, is a *transport.ServerError. Any other error means that
	// the connection is broken.
	Do(command string, args ...any) (any, error)
	// Close closes the connection and makes a pending Do return.
	Close() error
}

// Transport is a transport.Transport to one master.
type Transport struct {
	*pubsub.Subscriber // implements Subscribe
	dial               func(context.Context) (Conn, error)
	ctx                context.Context //nolint:containedctx // canceled by Close
	end                context.CancelCauseFunc
	room               chan struct{}  // one entry for each running call that is not urgent
	idle               chan Conn      // connections that are not in use
	begin              sync.Mutex     // held by Start, and by Close until no call can start
	calls              sync.WaitGroup // calls in progress
}

// New returns a transport. It closes the connections made by dial and listen.Dial.
func New(dial func(context.Context) (Conn, error), listen pubsub.Config) *Transport {
	t := &Transport{Subscriber: pubsub.New(listen), dial: dial, room: make(chan struct{}, most), idle: make(chan Conn, most)}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	return t
}

// PublishCommand returns PUBLISH, because this transport is not for clusters.
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
	default: // enough connections are idle
		_ = conn.Close()
	}
}

func (t *Transport) hangUp() {
	for len(t.idle) > 0 {
		select {
		case conn := <-t.idle:
			_ = conn.Close()
		default: // a concurrent call has taken it
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
