package work

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

// settle is how long a waiter gets to be waiting for good before it is woken.
const settle = 3 * time.Millisecond

// wakeups pass a lock between two clients of this process, which share nothing but
// the server: one clock tells when it was given and when it was got.
type wakeups struct {
	lockers  [2]contest.Locker
	keys     [2]contest.Key
	cancel   context.CancelFunc
	done     chan struct{}
	failed   failure
	counting atomic.Bool
	times    stats.Histogram // from the unlock's return
	whole    stats.Histogram // from its call
	since    usage
}

// got is what a waiter says when it has the lock.
type got struct {
	held contest.Held
	at   time.Time
	err  error
}

func startWakeups(ctx context.Context, c contest.Contestant, spec Spec) (job, error) {
	w := &wakeups{done: make(chan struct{})}
	for i := range w.lockers {
		locker, err := c.Open(ctx, contest.Settings{Addr: spec.Addr})
		if err != nil {
			return nil, err
		}
		w.lockers[i], w.keys[i] = locker, locker.Key(spec.Key)
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		defer close(w.done)
		if err := w.pass(ctx); err != nil {
			w.failed.set(err)
		}
	}()
	return w, nil
}

// pass hands the lock to and fro until ctx ends.
func (w *wakeups) pass(ctx context.Context) error {
	held, err := w.keys[0].Lock(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	for next := 1; ; next = 1 - next {
		result := make(chan got, 1)
		go func() {
			h, err := w.keys[next].Lock(ctx)
			result <- got{h, time.Now(), err}
		}()
		time.Sleep(settle)
		called := time.Now()
		if err := held.Unlock(); err != nil {
			w.cancel()
			<-result
			return err
		}
		freed := time.Now()
		g := <-result
		if g.err != nil {
			return unlessEnded(ctx, g.err)
		}
		if w.counting.Load() {
			w.times.Add(g.at.Sub(freed)) // not before: see Histogram.Add
			w.whole.Add(g.at.Sub(called))
		}
		held = g.held
	}
}

func (w *wakeups) begin() {
	w.since = now()
	w.counting.Store(true)
}

func (w *wakeups) end() Values {
	w.counting.Store(false)
	v := w.since.per(float64(w.times.Count()))
	v[P50], v[P99] = micros(w.times.Quantile(0.5)), micros(w.times.Quantile(0.99))
	v[Longest], v[Whole] = micros(w.times.Max()), micros(w.whole.Quantile(0.5))
	return v
}

func (w *wakeups) close() error {
	w.cancel()
	<-w.done
	return errors.Join(w.failed.get(), w.lockers[0].Close(), w.lockers[1].Close())
}
