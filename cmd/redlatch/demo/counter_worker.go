package demo

import (
	"context"
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// counterWorker is the one worker of a process that counts under the plain lock.
type counterWorker struct {
	*worker
	acquire func(ctx context.Context) (*visit, error)
	state   *counterState
	wait    time.Duration // how long the last acquisition took
}

// acquired takes in an acquisition, on the goroutine that makes it, which is the one that does the
// rounds.
func (w *counterWorker) acquired(ctx context.Context, e redlatch.Acquired) context.Context {
	w.wait = e.Wait
	return ctx
}

// countRounds connects and does rounds until ctx ends.
func countRounds(ctx context.Context, w *worker) error {
	c, err := w.redis.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	cw := &counterWorker{worker: w, state: newCounterState(c, w.cfg.Prefix, w.cfg.ID)}
	client, err := w.redis.Open(ctx, redlatch.WithWatchdogTimeout(w.cfg.Lease),
		redlatch.WithObserver(redlatch.Observer{Acquired: cw.acquired}))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all holds have been given up
	cw.acquire = withLock(rlock.New(client, cw.state.keys.lock), &w.visits)
	if w.cfg.Broken {
		cw.acquire = withoutLock(strconv.Itoa(w.cfg.ID))
	}
	w.report(&event{Kind: ready})
	for ctx.Err() == nil {
		if err := cw.round(ctx); err != nil {
			return err
		}
		pause(ctx, 5*time.Millisecond, 15*time.Millisecond)
	}
	return nil
}

// round takes the lock once.
func (w *counterWorker) round(ctx context.Context) error {
	w.report(&event{Kind: waiting})
	v, err := w.acquire(ctx)
	if err != nil {
		return err
	}
	w.report(&event{Kind: acquired, Owner: v.owner, Wait: w.wait})
	err = w.inside(ctx, v)
	if leaveErr := v.leave(); leaveErr != nil {
		w.report(&event{Kind: lost, Owner: v.owner})
	}
	return err
}

// inside is the critical section.
func (w *counterWorker) inside(ctx context.Context, v *visit) error {
	if err := w.enter(&w.state.marker, v); err != nil {
		return err
	}
	n, err := w.state.read()
	if err != nil {
		return err
	}
	if w.stall.Load() {
		w.report(&event{Kind: stalled, Owner: v.owner})
		<-ctx.Done() // killed before that, unless the demo ends first
		return w.exit(&w.state.marker, v)
	}
	pause(v.held, 5*time.Millisecond, 15*time.Millisecond)
	if v.isLost() {
		return nil // another worker may hold the lock now: touch nothing; leave returns the error
	}
	return w.finish(v, n+1)
}

// finish is the second half of the critical section.
func (w *counterWorker) finish(v *visit, n int64) error {
	if err := w.state.write(n); err != nil {
		return err
	}
	if err := w.exit(&w.state.marker, v); err != nil {
		return err
	}
	w.report(&event{Kind: released, Owner: v.owner})
	return nil
}
