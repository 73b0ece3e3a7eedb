// Package leader lets one of many processes lead: the one that holds a lock.
//
// # The life of a candidate
//
//	Run ──Lock──▶ waiting ──held──▶ leading: Lead runs with a context ──▶ Lead returned, Unlock
//	  ▲              │                 │                                      │
//	  │              │                 └─ the lock is lost, or Run's context   │
//	  │              │                    ends: Lead's context ends           │
//	  │              │ error                                                  │
//	  │              ▼                                                        │
//	  └── Pause ◀── OnError ◀──────────── the lock was lost ──────────────────┤
//	                 │                                                        │
//	                 │ an error that stays, such as ErrClosed                 │ Lead returned by itself,
//	                 ▼                                                        ▼ or Run's context ended
//	               Run returns it                                           Run returns
//
// The lock is one of package rlock, or of package rfairlock where candidates are to lead in the
// order in which they came. It is renewed while Lead runs. A leader that is asked to stop frees
// the lock as soon as Lead has returned, and another candidate leads at once. A leader that dies,
// or is cut off from Redis, is followed when its lease is over: 30 seconds, or what
// redlatch.WithWatchdogTimeout says.
//
// # What it promises
//
// Lead's context ends before another candidate can lead, unless the lock was taken by force or
// the server forgot it: then it ends with the next renewal, a third of the lease later at most. A
// process that was stopped for longer than its lease finds the context ended at its first look.
// What Lead does between two looks, and what is under way elsewhere, no lock can stop: for what
// must not happen twice take fencing tokens, package rfencedlock. When Lead has not returned by
// the time at which another may lead, that is logged as an error.
package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// defaultPause is how long a candidate waits after an error.
const defaultPause = time.Second

// Config says how a candidate leads. Only Lead must be set.
type Config struct {
	// Lead is what only the leader does. It should go on until ctx ends, and return soon then:
	// context.Cause of ctx says why it ended. When it returns before, Run ends, too, with its error.
	Lead func(ctx context.Context) error

	// Fair lets candidates lead in the order in which they came, of all processes. Default: the
	// first that gets the lock leads, which costs Redis less.
	Fair bool

	// OnError gets each error that does not end Run: why a leadership ended, such as
	// redlatch.ErrLost, joined with Lead's own error, or why the lock could not be asked for. It
	// is called on Run's goroutine, which goes on when it returns. Default: the client's logger
	// gets them as warnings.
	OnError func(err error)

	// Pause is how long the candidate waits after such an error before it asks again, which lets
	// another one lead. Default: 1 s.
	Pause time.Duration

	// Status shows whether this candidate leads, to other goroutines and to readiness probes.
	// Default: it is not shown.
	Status *Status
}

// Run makes this process a candidate: whenever no other one leads, it calls Lead, until ctx
// ends. All candidates give the same name, which is that of the lock, and the same Fair.
//
// It returns nil when ctx ended, or Lead returned nil by itself, and the lock is free again; the
// error of Lead when there was one, unless it says that ctx has ended; and joined with it that
// of Unlock, when the lock may not be free: redlatch.ErrUncertain, ErrNotSent or ErrLost, or
// when waiters were not notified that it is: redlatch.ErrNotNotified. Errors
// that stay are returned, too: ErrClosed after the client was closed, ErrInvalid for a name that
// no lock can have, a Pause below zero or a Config without Lead, and ErrWrongType when the key
// holds something else. Other errors go to OnError. When Lead panics, the lock is freed and the
// panic goes on.
//
// It sends what rlock.Lock.Lock and rlock.Hold.Unlock send. It is safe for concurrent use: each
// call is a candidate of its own.
func Run(ctx context.Context, client *redlatch.Client, name string, config Config) error {
	engine.NeedContext(ctx)
	e := engine.EngineOf(client)
	c := &candidate{Config: config, logger: e.Logger.With("lock", name), margin: e.LossMargin(e.Lease)}
	if c.Lead == nil || c.Pause < 0 {
		return &redlatch.LockError{Op: "lead", Name: name, Err: fmt.Errorf("%w: a Config needs Lead, and a Pause that is not below zero", redlatch.ErrInvalid)}
	}
	if c.Pause == 0 {
		c.Pause = defaultPause
	}
	if c.Status == nil {
		c.Status = &Status{}
	}
	lock := rlock.New(client, name)
	if c.Fair {
		lock = rfairlock.New(client, name)
	}
	for {
		over, err := c.stand(ctx, lock)
		if over {
			return err
		}
		c.report(err)
		if !c.pause(ctx) {
			return nil
		}
	}
}

// candidate is one call of Run.
type candidate struct {
	Config
	logger *slog.Logger
	margin time.Duration // after a hold was lost, how long it lasts on the server
}

// stand waits for the lock and leads. It reports whether Run is over, with its error, or else
// what is to be reported.
func (c *candidate) stand(ctx context.Context, lock *rlock.Lock) (over bool, err error) {
	hold, err := lock.Lock(ctx)
	switch {
	case err == nil:
		return c.lead(ctx, hold)
	case ctx.Err() != nil && !errors.Is(err, redlatch.ErrUncertain):
		return true, nil // it says that ctx has ended
	case ctx.Err() != nil:
		return true, err // the lock may not be free
	default:
		return stays(err), err
	}
}

// lead runs Lead once.
func (c *candidate) lead(ctx context.Context, hold *rlock.Hold) (over bool, err error) {
	leading := hold.Context(ctx)
	own, early, unlock := c.call(ctx, leading, hold)
	if !early && (errors.Is(own, context.Cause(leading)) || errors.Is(own, leading.Err())) {
		own = nil // it says that its context has ended
	}
	if !early && ctx.Err() == nil {
		cause := context.Cause(leading)
		return stays(cause), errors.Join(cause, own)
	}
	return true, errors.Join(own, unlock)
}

// call calls Lead and unlocks. Early says that Lead returned by itself.
func (c *candidate) call(ctx, leading context.Context, hold *rlock.Hold) (own error, early bool, unlock error) {
	c.Status.lead(leading)
	returned := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { c.watch(hold.Context(context.WithoutCancel(ctx)), returned) })
	defer func() {
		close(returned)
		watch.Wait()
		unlock = hold.Unlock()
	}()
	own = c.Lead(leading)
	return own, leading.Err() == nil, nil
}

// watch logs when Lead goes on although another candidate may lead.
func (c *candidate) watch(held context.Context, returned <-chan struct{}) {
	select {
	case <-held.Done():
	case <-returned:
		return
	}
	select {
	case <-time.After(c.margin):
		c.logger.Error("Lead has not returned, and another candidate may lead now", "cause", context.Cause(held))
	case <-returned:
	}
}

// report reports an error that does not end Run.
func (c *candidate) report(err error) {
	if c.OnError != nil {
		c.OnError(err)
		return
	}
	c.logger.Warn("the candidate does not lead, and asks again after a pause", "error", err, "pause", c.Pause)
}

// pause lets another candidate lead. It reports whether ctx goes on.
func (c *candidate) pause(ctx context.Context) bool {
	timer := time.NewTimer(c.Pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// stays says that no later attempt can go better.
func stays(err error) bool {
	return errors.Is(err, redlatch.ErrClosed) || errors.Is(err, redlatch.ErrInvalid) || errors.Is(err, redlatch.ErrWrongType)
}

// Status shows whether a candidate leads. The zero Status is ready: give it to one [Run], in
// its Config. All methods are safe for concurrent use, and send nothing.
type Status struct {
	ended atomic.Pointer[func() error] // Err of the context of the last leadership
}

// lead shows a leadership for as long as its context lives.
func (s *Status) lead(leading context.Context) {
	ended := leading.Err
	s.ended.Store(&ended)
}

// IsLeader reports whether the candidate leads now: whether the context that Lead got is live.
// It asks the clocks, so that it is right at the first instruction after the machine was
// suspended. By the time that a caller acts on it, it may be over: what must not happen twice
// heeds Lead's context.
func (s *Status) IsLeader() bool {
	ended := s.ended.Load()
	return ended != nil && (*ended)() == nil
}

// ServeHTTP answers a readiness probe: 200 and "leader" when the candidate leads, 503 and
// "standby" when it does not, so that a load balancer sends requests to the leader alone. It is
// no liveness probe: a candidate that waits is well. It answers every method and path.
func (s *Status) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !s.IsLeader() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("standby\n"))
		return
	}
	_, _ = w.Write([]byte("leader\n"))
}
