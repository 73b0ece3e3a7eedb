// Package schedules runs locks in random orders (see package schedule) on an in-memory server. It checks the promises
// to their callers:
//
//   - While a hold does not report an error, the server has it for longer than its remaining lease.
//   - Callers do not wait while the lock is free or enough permits are available.
//   - Each acquisition is released exactly once. At the end, the server does not have any holds,
//     waiters or subscriptions.
package schedules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/schedule"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	callers = 5
	rounds  = 4
	lease   = 10 * time.Minute // longer than a schedule, so that a hold that is never released does not expire
	key     = "lock"
)

// schedules returns the number of schedules that each test runs.
func schedules() int { return testlevel.Rounds(120, 1000) }

// world is the server and the clients of one schedule.
type world struct {
	*schedule.Schedule
	t       *testing.T
	server  *server
	clients []*redlatch.Client
	faults  bool // in every third schedule
	closes  bool // whether one client is closed, after which uncertain calls cannot be undone
	judges  bool // whether holds are checked while callers run, which synchronizes them and hides races
}

func newWorld(t *testing.T, s *schedule.Schedule, n int) *world {
	t.Helper()
	w := &world{
		Schedule: s, t: t, faults: s.Seed%3 == 0, closes: s.Seed%3 == 1 && s.Seed%5 == 0, judges: s.Seed%8 < 4, server: newServer(200 * time.Millisecond),
	}
	pollCap := 2 * time.Second
	if w.faults { // because of them, a lock may stay free for a while, but not until the next poll
		w.server.limit, pollCap = 20*time.Second, time.Minute
	}
	for i := range n {
		tr := newNetwork(s, w.server, fmt.Sprint("network ", i), w.faults)
		c, err := redlatch.NewWithTransport(tr, redlatch.WithWatchdogTimeout(lease), redlatch.WithPollCap(pollCap),
			redlatch.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		w.server.networks, w.clients = append(w.server.networks, tr), append(w.clients, c)
	}
	if w.closes {
		s.Go("closer", func(a *schedule.Actor) {
			a.Sleep([]time.Duration{0, 10 * time.Microsecond, time.Millisecond, time.Second}[a.Pick(4)])
			w.failed(w.clients[0].Shutdown(context.Background()))
		})
	}
	return w
}

// end waits for the actors, closes the clients and checks that the server is empty.
func (w *world) end() {
	w.Wait()
	for _, tr := range w.server.networks {
		tr.heal()
	}
	if time.Sleep(time.Second); w.faults {
		time.Sleep(30 * time.Second) // until uncertain attempts have been undone
	}
	w.empty("before Close")
	for _, c := range w.clients {
		require.NoError(w.t, c.Close())
	}
	time.Sleep(10 * time.Second) // late replies
	w.empty("after Close")
	for _, tr := range w.server.networks {
		require.Empty(w.t, tr.Channels())
	}
	require.Empty(w.t, w.server.late, "waits for a free lock")
}

func (w *world) empty(when string) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for key := range w.server.locks {
		require.Empty(w.t, w.server.lock(key).owners, when)
		require.Empty(w.t, w.server.locks[key].queue, when)
	}
}

// failed reports whether a call failed. The error must be one that the schedule explains.
func (w *world) failed(err error, expected ...error) bool {
	if w.faults {
		expected = append(expected, transport.ErrNotSent, transport.ErrUncertain, redlatch.ErrLost)
	}
	if w.closes {
		expected = append(expected, redlatch.ErrClosed)
	}
	for _, e := range expected {
		if errors.Is(err, e) {
			return true
		}
	}
	return !assert.NoError(w.t, err)
}

// user is a caller of one lock.
type user struct {
	*world
	*schedule.Actor
	name  string
	owner codec.Owner   // if not zero, shared with other callers
	locks []*rlock.Lock // the roles of the lock
	lock  *rlock.Lock   // the chosen one
}

// choose selects a role.
func (u *user) choose() { u.lock = u.locks[u.Pick(len(u.locks))] }

// acquire acquires the lock with a random time limit, or only tries to.
func (u *user) acquire(ctx context.Context, opts ...rlock.Option) *rlock.Hold {
	patience := []time.Duration{time.Nanosecond, time.Microsecond, 3 * time.Microsecond, 20 * time.Millisecond, time.Second, time.Hour, time.Hour, time.Hour}
	wait := patience[u.Pick(len(patience))]
	shared := u.owner != codec.Owner{}
	if shared { // a call that returns early could leave a count
		wait, opts = time.Hour, append(opts, rlock.WithOwner(u.owner), rlock.WithLease(time.Duration(1+u.Pick(3))*lease))
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock := u.lock.Lock
	if u.Pick(8) == 0 {
		lock = u.lock.TryLock
	} else if !shared && u.judges && ctx.Value(inner{}) == nil {
		defer u.server.waits(key, 0, cancel)()
	}
	if u.faults && len(u.locks) == 1 && u.Pick(4) == 0 { // waiters do not know the leases of all readers
		opts = append(opts, rlock.WithLease(2*time.Second))
	}
	h, err := lock(ctx, opts...)
	if u.failed(err, redlatch.ErrNotAcquired, context.DeadlineExceeded, context.Canceled, rreadwritelock.ErrUpgrade) {
		return nil
	}
	u.check(h)
	return h
}

// check requires that a valid hold is on the server.
func (u *user) check(h *rlock.Hold) {
	if !u.judges {
		return
	}
	least := h.Remaining()
	if u.Seed%2 == 1 { // a concurrent release may overtake an acquisition, and its client corrects that soon
		least = min(least, lease/2)
	}
	if err := h.Err(); err == nil {
		assert.Less(u.t, least, u.server.left(key, h.Owner().String()), "%s holds what may be free", u.name)
	} else {
		assert.True(u.t, u.failed(err))
	}
}

// use holds the lock for a while, sometimes with inner holds.
func (u *user) use(h *rlock.Hold, depth int) {
	durations := []time.Duration{0, 0, 0, 0, time.Microsecond, time.Millisecond, 50 * time.Millisecond, 1500 * time.Millisecond, 5 * time.Second}
	u.Sleep(durations[u.Pick(len(durations))])
	for i := range u.Pick(3) * u.Pick(2) {
		u.inside(h, fmt.Sprintf("%s.%d", u.name, i), depth)
	}
	if depth == 0 {
		u.Yield()
	}
	u.check(h)
	u.release(h)
}

// inner is the context key of inner callers, which may wait for each other.
type inner struct{}

// inside starts an actor that locks again with the proof of a hold.
func (u *user) inside(h *rlock.Hold, name string, depth int) {
	if depth == 0 {
		return
	}
	ctx, in := context.WithoutCancel(h.Context(context.WithValue(context.Background(), inner{}, true))), *u
	u.Go(name, func(a *schedule.Actor) {
		in.Actor, in.name = a, name
		in.choose()
		if h := in.acquire(ctx); h != nil {
			in.use(h, depth-1)
		}
	})
}

func (u *user) release(h *rlock.Hold) {
	var err error
	switch u.Pick(6) {
	default:
		err = h.Unlock()
	case 0: // the next caller is canceled while it is being woken
		ended := h.UnlockAsync()
		u.server.cancel()
		err = <-ended
	case 1: // or just before that
		u.server.cancel()
		err = <-h.UnlockAsync()
	}
	u.failed(err)
	assert.Equal(u.t, err, h.Unlock(), "the result is always the first one")
	u.Yield()
	assert.True(u.t, u.failed(h.Err(), redlatch.ErrNotHeld))
}

// play makes the callers of two clients use the locks that they pick.
func play(t *testing.T, locks func(c *redlatch.Client) []*rlock.Lock) {
	t.Helper()
	schedule.Run(t, schedules(), func(t *testing.T, s *schedule.Schedule) {
		t.Helper()
		w, owner := newWorld(t, s, 1+int(s.Seed/2%2)), codec.NewOwner(uuid.New(), 1)
		for i := range callers {
			u := &user{world: w, name: fmt.Sprint("caller ", i), locks: locks(w.clients[i%len(w.clients)])}
			depth := 2
			if s.Seed%3 == 1 && !w.closes && i%2 == 0 && len(u.locks) == 1 {
				u.owner, depth = owner, 0
			}
			s.Go(u.name, func(a *schedule.Actor) {
				u.Actor = a
				for range rounds {
					u.choose()
					if h := u.acquire(t.Context()); h != nil {
						u.use(h, depth)
					}
					a.Yield()
				}
			})
		}
		w.end()
	})
}

func TestPlainLockSchedules(t *testing.T) {
	play(t, func(c *redlatch.Client) []*rlock.Lock { return []*rlock.Lock{rlock.New(c, key)} })
}

func TestFairLockSchedules(t *testing.T) {
	play(t, func(c *redlatch.Client) []*rlock.Lock { return []*rlock.Lock{rfairlock.New(c, key)} })
}

func TestReadWriteLockSchedules(t *testing.T) {
	play(t, func(c *redlatch.Client) []*rlock.Lock {
		l := rreadwritelock.New(c, key)
		return []*rlock.Lock{l.Read(), l.Read(), l.Write()}
	})
}
