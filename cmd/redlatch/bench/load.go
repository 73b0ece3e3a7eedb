package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// manyCallers is how many callers there are where there are many.
	manyCallers = 64
	// callersEach is how many callers of each of two clients want one lock.
	callersEach = 4

	trips   = 100
	parts   = 4
	lease   = 10 * time.Second
	awhile  = 5 * time.Millisecond // for which a lock is held until its waiter sleeps
	perTrip = 4                    // and for so many round trips, too
)

// result is what was measured.
type result struct {
	// Trip is how long a PING takes.
	Trip spread `json:"round_trip"`
	// PairsOfOne and PairsOfMany are pairs a second, by one caller and by Many.
	PairsOfOne  float64 `json:"pairs_by_1"`
	PairsOfMany float64 `json:"pairs_by_64"`
	// HandOvers are hand-overs a second.
	HandOvers float64 `json:"hand_overs"`
	// WakeUp is how long a wake-up takes.
	WakeUp spread `json:"wake_up"`
}

// spread is how a time is spread.
type spread struct {
	// P50 and P99 are the times that 50 and 99 of a hundred stay below, in
	// microseconds in JSON.
	P50 micros `json:"p50_us"`
	P99 micros `json:"p99_us"`
	// Count is how many there were.
	Count int `json:"count"`
}

// micros is a time that JSON has in microseconds.
type micros time.Duration

// MarshalJSON is part of json.Marshaler.
func (m micros) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d", time.Duration(m).Microseconds()), nil
}

// spreadOf sorts times and looks at them.
func spreadOf(times []time.Duration) spread {
	if len(times) == 0 {
		return spread{}
	}
	slices.Sort(times)
	return spread{
		P50: micros(times[len(times)/2]), P99: micros(times[len(times)*99/100]), Count: len(times),
	}
}

// run is one measurement.
type run struct {
	ctx     context.Context //nolint:containedctx // that of the whole measurement, which its parts share
	prefix  string
	part    time.Duration
	clients [2]*redlatch.Client
}

// measure measures the server for about d, with locks whose names begin with prefix. It
// returns when ctx ends, too, with its error.
func measure(ctx context.Context, srv *connect.Server, prefix string, d time.Duration) (*result, error) {
	r := &run{ctx: ctx, prefix: prefix + "redlatch-bench:" + uuid.NewString()[:8] + ":", part: d / parts}
	for i := range r.clients {
		client, err := srv.Open(ctx, redlatch.WithWatchdogTimeout(lease))
		if err != nil {
			return nil, err
		}
		defer func() { _ = client.Close() }() // every lock was unlocked
		r.clients[i] = client
	}
	res := &result{}
	err := r.measure(srv, res)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, explain(srv, err)
	}
	return res, nil
}

// explain returns the error to print. The server answered if a lock was lost.
func explain(srv *connect.Server, err error) error {
	if errors.Is(err, errNoLock) || errors.Is(err, redlatch.ErrLost) {
		return fmt.Errorf("%s: %w", srv, err)
	}
	return srv.Problem(err)
}

// errNoLock is the error where a measurement would say that there are no locks in a second.
var errNoLock = errors.New("no lock was had in time. `redlatch doctor` looks at the server")

func (r *run) measure(srv *connect.Server, res *result) (err error) {
	if res.Trip, err = r.roundTrips(srv); err != nil {
		return err
	}
	if res.PairsOfOne, err = r.pairs(1); err != nil {
		return err
	}
	if res.PairsOfOne == 0 {
		return cmp.Or(r.answers(srv), errNoLock)
	}
	if res.PairsOfMany, err = r.pairs(manyCallers); err != nil {
		return err
	}
	if res.HandOvers, err = r.handOvers(); err != nil {
		return err
	}
	if res.WakeUp, err = r.wakeUps(awhile + perTrip*time.Duration(res.Trip.P50)); err != nil {
		return err
	}
	return r.answers(srv)
}

// answers checks that the server still answers: callers whose time ends while they wait for
// it return no error.
func (r *run) answers(srv *connect.Server) error {
	c, err := srv.Dial(r.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	_, err = c.Do("PING")
	return err
}

// roundTrips times PINGs.
func (r *run) roundTrips(srv *connect.Server) (spread, error) {
	c, err := srv.Dial(r.ctx)
	if err != nil {
		return spread{}, err
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	times := make([]time.Duration, trips)
	for i := range times {
		began := time.Now()
		if _, err := c.Do("PING"); err != nil {
			return spread{}, err
		}
		times[i] = time.Since(began)
	}
	return spreadOf(times), nil
}

// runCallers lets callers of the clients take locks, until the part is over or one of them
// fails. Each visit gets the number of its client, once it has the lock. It returns how
// long that took.
func (r *run) runCallers(callers int, nameOf func(caller int) string, visit func(client int)) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.part)
	defer cancel()
	began := time.Now()
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		lock := rlock.New(r.clients[i%len(r.clients)], nameOf(i))
		all.Go(func() {
			errs[i] = comeAndGo(ctx, lock, func() { visit(i % len(r.clients)) })
			if errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return time.Since(began), errors.Join(errs...)
}

// comeAndGo takes and frees a lock again and again until ctx ends.
func comeAndGo(ctx context.Context, lock *rlock.Lock, inside func()) error {
	for ctx.Err() == nil {
		hold, err := lock.Lock(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the time is over, and that is why
			}
			return err
		}
		inside()
		if err := hold.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

// pairs returns how many pairs a second callers make that have a lock each.
func (r *run) pairs(callers int) (float64, error) {
	var done atomic.Int64
	took, err := r.runCallers(callers, func(i int) string { return fmt.Sprintf("%s%d", r.prefix, i) }, func(int) { done.Add(1) })
	return float64(done.Load()) / took.Seconds(), err
}

// handOvers returns how often a second a lock goes from one client to the other.
func (r *run) handOvers() (float64, error) {
	var last, done atomic.Int64
	took, err := r.runCallers(2*callersEach, func(int) string { return r.prefix + "one" }, func(client int) {
		if last.Swap(int64(client)) != int64(client) {
			done.Add(1)
		}
	})
	return float64(done.Load()) / took.Seconds(), err
}

// releasedBy is a release: the client that unlocks, and when it began.
type releasedBy struct {
	client int
	at     time.Time
}

// wakeUps times how a lock goes to and fro between two callers.
func (r *run) wakeUps(hold time.Duration) (spread, error) {
	var gone atomic.Pointer[releasedBy]
	var mu sync.Mutex // guards times
	var times []time.Duration
	_, err := r.runCallers(2, func(int) string { return r.prefix + "one" }, func(client int) {
		now := time.Now()
		if before := gone.Load(); before != nil && before.client != client {
			mu.Lock()
			times = append(times, now.Sub(before.at))
			mu.Unlock()
		}
		pause(r.ctx, hold)
		gone.Store(&releasedBy{client: client, at: time.Now()})
	})
	return spreadOf(times), err
}

// pause sleeps, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
