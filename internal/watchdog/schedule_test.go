package watchdog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	schedules "github.com/redlatch/redlatch/internal/test/schedule"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// Owners add and remove leases, the server answers renewals or fails them, doubts are raised and Close is
// called, mostly when a lease is due or expires. The test's own state has no locks: they would hide missing
// ones from the race detector.
func TestEachLeaseEndsOnceInEverySchedule(t *testing.T) {
	schedules.Run(t, testlevel.Rounds(300, 5000), func(t *testing.T, s *schedules.Schedule) {
		t.Helper()
		o := &orders{t: t, s: s, loop: s.Actor("loop"), doubts: doubts{next: make(chan struct{})}}
		logger := slog.New(&yielding{Handler: slog.DiscardHandler, a: s.Actor("logger")})
		o.w = New(Config{Renew: o.renew, Margin: margin, Doubt: o.doubt, Logger: logger})
		owned := make([][]*owned, 4+len(o.closed))
		for i := range 4 {
			s.Go(fmt.Sprint("owner ", i), func(a *schedules.Actor) {
				for range 3 {
					owned[i] = append(owned[i], o.own(a))
				}
			})
		}
		s.Go("doubter", o.raise)
		s.Go("drainer", o.drain)
		s.Go("observer", o.observe)
		for i := range o.closed {
			s.Go(fmt.Sprint("closer ", i), func(a *schedules.Actor) {
				a.Sleep(time.Duration(3+a.Pick(5)) * time.Second)
				o.meet(a)
				s.Go(fmt.Sprint("late owner ", i), func(a *schedules.Actor) { owned[4+i] = append(owned[4+i], o.own(a)) })
				o.close(a, i)
			})
		}
		s.Wait()
		o.check(slices.Concat(owned...))
	})
}

type orders struct {
	t       *testing.T
	s       *schedules.Schedule
	w       *Loop
	loop    *schedules.Actor // the loop's goroutine
	doubts  doubts
	scripts int     // of renewals
	closed  [2]bool // Close has returned
}

// soon is longer than the loop's goroutine yields at a time.
const soon = 50 * time.Microsecond

// yielding is a logger for one goroutine at a time.
type yielding struct {
	slog.Handler
	a     *schedules.Actor
	lines int
}

func (*yielding) Enabled(context.Context, slog.Level) bool { return true }

func (y *yielding) Handle(context.Context, slog.Record) error {
	y.lines++
	y.a.Yield()
	return nil
}

// owned is a lease that records its end.
type owned struct {
	Holder
	lease   Lease
	o       *orders
	a       *schedules.Actor // its end
	added   bool
	removed bool        // by its owner
	untried atomic.Bool // it was removed before any renewal
	busy    bool        // a renewal is in flight
	tried   bool
	ends    []End
	at      time.Time // of the end
}

func (h *owned) LeaseLost(end End) {
	h.ends, h.at = append(h.ends, end), time.Now()
	if h.a.Yield(); end != EndClosed {
		assert.Equal(h.o.t, [2]bool{}, h.o.closed, "Close has returned")
	}
}

// doubt returns the next doubt.
func (o *orders) doubt() <-chan struct{} {
	o.loop.Yield()
	return o.doubts.channel()
}

// own holds a lease until a random time.
func (o *orders) own(a *schedules.Actor) *owned {
	h := &owned{o: o, a: o.s.Actor(fmt.Sprint("end ", a.Pick(1e9)))}
	ttl := time.Duration(1+a.Pick(3)) * time.Second
	h.lease = Lease{Key: "k", Owner: "o", TTL: ttl, TTLArg: ttl.Milliseconds(), Fixed: a.Pick(4) == 0, Holder: h}
	h.lease.Max = time.Duration(a.Pick(2)*(2+a.Pick(4))) * time.Second
	h.lease.Trust = time.Duration(a.Pick(2)) * time.Second
	sent := time.Now()
	a.Sleep(time.Duration(a.Pick(2)) * 300 * time.Millisecond) // the reply takes that long
	h.lease.Hold(sent, margin)
	if h.added = o.w.Add(&h.lease); !h.added {
		return h
	}
	for range 1 + a.Pick(3) {
		o.sleep(a, &h.lease)
		over := h.lease.Over(time.Now()) != 0
		_, _ = o.w.Tried(&h.lease), o.w.Doubted(&h.lease)
		a.Yield()
		assert.False(o.t, over && h.lease.Over(time.Now()) == 0, "a lease that was over lasts again")
	}
	h.removed = o.w.Remove(&h.lease)
	h.untried.Store(h.removed && !o.w.Tried(&h.lease))
	return h
}

// sleep sleeps until something happens to the lease.
func (o *orders) sleep(a *schedules.Actor, l *Lease) {
	switch a.Pick(4) {
	case 0:
		a.Sleep(time.Until(l.Ends()))
	case 1:
		a.Sleep(l.counts() / 3)
	case 2:
		a.Sleep(time.Second)
	}
	a.Yield()
}

// meet sleeps until something happens to a random lease.
func (o *orders) meet(a *schedules.Actor) {
	if all := o.w.All(); len(all) > 0 {
		o.sleep(a, all[a.Pick(len(all))])
	}
}

// renew acts as the server.
func (o *orders) renew(leases []*Lease, done func([]bool, error)) {
	sent := time.Now()
	for _, l := range leases {
		h, _ := l.Holder.(*owned)
		assert.False(o.t, h.busy, "it is being renewed")
		assert.False(o.t, h.untried.Load(), "it was removed")
		assert.Zero(o.t, l.Over(sent.Add(-soon)), "its time has passed")
		h.busy, h.tried = true, true
	}
	o.loop.Yield()
	assert.Equal(o.t, [2]bool{}, o.closed, "Close has returned")
	o.scripts++
	o.s.Go(fmt.Sprint("script ", o.scripts), func(a *schedules.Actor) {
		o.sleep(a, leases[a.Pick(len(leases))])
		held := make([]bool, len(leases))
		for i, l := range leases {
			held[i] = a.Pick(8) > 0
			h, _ := l.Holder.(*owned)
			h.busy = false
		}
		var err error
		if a.Pick(4) == 0 {
			err = errors.New("no answer")
		}
		done(held, err)
		a.Sleep(soon) // until the loop has handled that
		watched := o.w.All()
		for i, l := range leases {
			if !slices.Contains(watched, l) {
				continue
			}
			assert.True(o.t, held[i] || err != nil, "the server does not have it")
			if err == nil && !l.Fixed {
				assert.False(o.t, l.Deadline().Time().Before(sent.Add(l.counts()-margin(l.counts()))), "it was not confirmed")
			}
		}
	})
}

// raise raises doubts. Each causes all leases to be renewed within a second.
func (o *orders) raise(a *schedules.Actor) {
	for range 3 {
		a.Sleep(time.Duration(a.Pick(3)) * 500 * time.Millisecond)
		o.meet(a)
		before, at := o.w.All(), time.Now()
		o.doubts.raise()
		a.Sleep(rechecks + soon)
		now := o.w.All()
		o.w.mu.Lock()
		for _, l := range before {
			renewed := !l.confirmed() || l.pending || l.retry > 0 || !l.sent.Before(at)
			assert.True(o.t, renewed || !slices.Contains(now, l), "it is in doubt")
		}
		o.w.mu.Unlock()
	}
}

func (o *orders) drain(a *schedules.Actor) {
	a.Sleep(time.Duration(3+a.Pick(6)) * time.Second)
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Hour)
	defer cancel()
	o.w.Drain(ctx)
	assert.NoError(o.t, ctx.Err())
	assert.Zero(o.t, o.w.Len())
	assert.False(o.t, o.w.Add(&Lease{}))
}

func (o *orders) observe(a *schedules.Actor) {
	for range 12 {
		a.Sleep(time.Duration(a.Pick(3)) * 500 * time.Millisecond)
		switch a.Pick(3) {
		case 0:
			o.w.Len()
		case 1:
			o.w.Oldest()
		case 2:
			o.w.Cut()
		}
	}
}

func (o *orders) close(a *schedules.Actor, i int) {
	a.Yield()
	o.w.Close()
	o.closed[i] = true
	assert.Zero(o.t, o.w.Len())
	assert.False(o.t, o.w.Add(&Lease{}))
}

func (o *orders) check(all []*owned) {
	cut := 0
	for _, h := range all {
		require.Equal(o.t, h.tried, o.w.Tried(&h.lease))
		if !h.added || h.removed {
			require.Empty(o.t, h.ends)
			continue
		}
		require.Len(o.t, h.ends, 1)
		switch h.ends[0] {
		case EndLease, EndMax:
			require.Equal(o.t, h.ends[0], h.lease.Over(h.at))
			require.WithinRange(o.t, h.at, h.lease.Ends(), h.lease.Ends().Add(soon))
		case EndClosed:
			cut++
		}
	}
	require.Equal(o.t, cut, o.w.Cut())
}
