package demo

import (
	"context"
	"strconv"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// rounder is the one worker of a process that counts under the plain lock.
type rounder struct {
	*worker
	door func(ctx context.Context) (*visit, error)
	book *book
	wait time.Duration // how long the last acquisition took
}

// Observe is part of redlatch.Observer. Acquisitions are told on the goroutine
// that makes them, which is the one that does the rounds.
func (r *rounder) Observe(e redlatch.Event) {
	if a, ok := e.(redlatch.Acquired); ok {
		r.wait = a.Wait
	}
}

// countRounds connects and does rounds until ctx ends.
func countRounds(ctx context.Context, w *worker) error {
	c, err := w.redis.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	r := &rounder{worker: w, book: newBook(c, w.cfg.Prefix, w.cfg.ID)}
	client, err := w.redis.Open(ctx, redlatch.WithWatchdogTimeout(w.cfg.Lease), redlatch.WithObserver(r))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all holds have been given up
	r.door = throughLock(rlock.New(client, r.book.keys.lock))
	if w.cfg.Broken {
		r.door = throughWall(strconv.Itoa(w.cfg.ID))
	}
	w.emit(&event{Kind: ready})
	for ctx.Err() == nil {
		if err := r.round(ctx); err != nil {
			return err
		}
		pause(ctx, 5*time.Millisecond, 15*time.Millisecond)
	}
	return nil
}

// round takes the lock once.
func (r *rounder) round(ctx context.Context) error {
	r.emit(&event{Kind: waiting})
	v, err := r.door(ctx)
	if err != nil {
		return err
	}
	r.emit(&event{Kind: acquired, Owner: v.owner, Wait: r.wait})
	err = r.inside(ctx, v)
	if leaveErr := v.leave(); leaveErr != nil {
		r.emit(&event{Kind: lost, Owner: v.owner})
	}
	return err
}

// inside is the critical section.
func (r *rounder) inside(ctx context.Context, v *visit) error {
	if err := r.enter(&r.book.marker, v); err != nil {
		return err
	}
	n, err := r.book.read()
	if err != nil {
		return err
	}
	if r.stall.Load() {
		r.emit(&event{Kind: stalled, Owner: v.owner})
		<-ctx.Done() // killed before that, unless the demo ends first
		return r.exit(&r.book.marker, v)
	}
	pause(v.held, 5*time.Millisecond, 15*time.Millisecond)
	if v.over() {
		return nil // somebody else may be inside now: touch nothing; leave says so
	}
	return r.finish(v, n+1)
}

// finish is the second half of the critical section.
func (r *rounder) finish(v *visit, n int64) error {
	if err := r.book.write(n); err != nil {
		return err
	}
	if err := r.exit(&r.book.marker, v); err != nil {
		return err
	}
	r.emit(&event{Kind: released, Owner: v.owner})
	return nil
}
