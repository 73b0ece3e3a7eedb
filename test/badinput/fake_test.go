package badinput_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// proper are the replies to the scripts and commands of an uncontended lock.
func proper(c *transport.Call) any {
	switch c.Name() {
	case "reenter", "fair_reenter", "replicate", "release", "fair_release", "release_shared", "fair_release_shared",
		"force_release", "fair_force_release", "fair_nudge":
		return int64(1)
	case "renew":
		held := make([]any, c.NumKeys)
		for i := range held {
			held[i] = int64(1)
		}
		return held
	case "inspect":
		return []any{int64(-2), []any{}}
	case "fair_inspect":
		return []any{int64(5000), []any{"holder", "1"}, []any{"first", "second"}, []any{"first", "1", "second", "2"}, []any{int64(0)}, int64(2)}
	case "fair_heartbeat":
		return []any{int64(5000), []any{"first", "1", "second", "2"}, []any{}, int64(2)}
	case "fair_evict":
		return []any{"first"}
	case "EXISTS", "HEXISTS", "DEL":
		return int64(0)
	case "PTTL":
		return int64(-2)
	case "TIME":
		return []any{"946684800", "0"} // when bubbles begin
	}
	return nil // acquire, give up, HGET
}

// tooMany is how many calls one test may make: a caller that makes more does not pause. A
// server that answers again and again that a lock has a millisecond left is asked 5000
// times in ten seconds.
const tooMany = 8000

// fake is a transport over a server that answers as it should, but for one script or
// command.
type fake struct {
	target string // "" for none
	reply  any    // what that is answered with

	mu     sync.Mutex // guards what follows
	closed bool
	calls  int
	struck int // calls of the target
}

func newFake() *fake { return &fake{} }

// Start is part of transport.Transport.
func (f *fake) Start(c *transport.Call, done transport.Done) {
	f.mu.Lock()
	f.calls++
	over := f.closed || f.calls > tooMany
	hit := c.Name() == f.target
	if hit {
		f.struck++
	}
	f.mu.Unlock()
	switch {
	case over, !c.Claim(1):
		done(nil, fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed))
	case !hit:
		done(proper(c), nil)
	default:
		if err, refused := f.reply.(*transport.ServerError); refused {
			done(nil, err)
			return
		}
		done(f.reply, nil)
	}
}

// Subscribe is part of transport.Transport.
func (f *fake) Subscribe(ctx context.Context, _ string) (transport.Subscription, error) {
	return quiet{make(chan transport.Event)}, ctx.Err()
}

// PublishCommand is part of transport.Transport.
func (f *fake) PublishCommand() string { return "PUBLISH" }

// Listeners is part of transport.Counter: the first of the channels has a listener.
func (f *fake) Listeners(_ context.Context, channels ...string) ([]int64, error) {
	counts := make([]int64, len(channels))
	if len(counts) > 0 {
		counts[0] = 1
	}
	return counts, nil
}

// Replicate is part of transport.Replicator: a replica has whatever is written.
func (f *fake) Replicate(c *transport.Call, _ int, _ time.Duration, done transport.Replicated) {
	f.Start(c, func(reply any, err error) { done(reply, 1, err) })
}

// Close is part of transport.Transport.
func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

// counts returns how many calls there were, and how many of the target.
func (f *fake) counts() (calls, struck int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls, f.struck
}

// quiet is a subscription that says nothing.
type quiet struct{ events chan transport.Event }

// Events is part of transport.Subscription.
func (q quiet) Events() <-chan transport.Event { return q.events }

// Err is part of transport.Subscription.
func (quiet) Err() error { return nil }

// Close is part of transport.Subscription.
func (quiet) Close() {}
