package locksuite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func oneAtATime(t *testing.T, s suite) {
	t.Helper()
	const each = 3
	many := testlevel.Rounds(15, 60)
	first := s.lock(t)
	locks := []*rlock.Lock{first, s.same(t, first), s.same(t, first)}
	ctx := callers.Within(t)
	var wg sync.WaitGroup
	sum := 0
	for i := range many {
		wg.Go(func() {
			for range each {
				err := locks[i%len(locks)].Do(ctx, func(context.Context) error {
					was := sum
					time.Sleep(100 * time.Microsecond)
					sum = was + 1
					return nil
				})
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, many*each, sum)
	s.free(t, first.Name())
}

func everyQuestion(t *testing.T, s suite) {
	t.Helper()
	l, ctx := s.lock(t), callers.Within(t)
	other := s.same(t, l)
	hold, err := l.TryLock(ctx)
	require.NoError(t, err)
	_, err = other.TryLock(ctx)
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	again, err := l.Lock(hold.Context(ctx))
	require.NoError(t, err)
	n, err := other.HoldCount(ctx, hold.Owner())
	require.NoError(t, err)
	assert.EqualValues(t, 2, n)
	left, err := other.TTL(ctx)
	require.NoError(t, err)
	assert.Greater(t, left, 10*time.Second)
	seen, err := admin.Inspect(ctx, other)
	require.NoError(t, err)
	require.Len(t, seen.Holders, 1)
	assert.Equal(t, hold.Owner(), seen.Holders[0].Owner)
	require.NoError(t, again.Unlock())
	require.NoError(t, hold.Unlock())
	locked, err := other.IsLocked(ctx)
	require.NoError(t, err)
	assert.False(t, locked)

	hold, err = l.Lock(ctx, rlock.WithWait(soon), rlock.WithLease(20*time.Second))
	require.NoError(t, err)
	forced, err := other.ForceUnlock(ctx)
	require.NoError(t, err)
	assert.True(t, forced)
	assert.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	s.free(t, l.Name())
}

// sleeper returns the lock, opened by another client. That client's waiters acquire it soon only if a message wakes
// them; called counts those woken by a heartbeat instead.
func (s suite) sleeper(t *testing.T, name string) (l *rlock.Lock, called *atomic.Int64) {
	t.Helper()
	called = new(atomic.Int64)
	woken := redlatch.Observer{Woken: func(_ context.Context, e redlatch.Woken) {
		if e.By == "turn" {
			called.Add(1)
		}
	}}
	return s.kind.New(s.Client(t, redlatch.WithPollCap(4*soon), redlatch.WithObserver(woken)), name), called
}

func wokenByOwn(t *testing.T, s suite) {
	t.Helper()
	l := s.lock(t)
	other, called := s.sleeper(t, l.Name())
	for range 5 {
		hold, err := l.Lock(callers.Within(t), rlock.WithLease(4*soon))
		require.NoError(t, err)
		came := lockLater(callers.Within(t), other)
		s.listening(t, l, 1)
		require.NoError(t, hold.Unlock())
		require.NoError(t, callers.Must(t, came, soon).Unlock())
	}
	assert.LessOrEqual(t, called.Load(), int64(1), "messages were lost")
	s.free(t, l.Name())
}

func wokenByPeers(t *testing.T, s suite) {
	t.Helper()
	l, called := s.sleeper(t, redistest.Key(t))
	for i := range 4 * len(s.Publish) {
		if s.kind.ReadWrite {
			s.Do(t, l.Name(), "HSET", l.Name(), protocol.ModeField, protocol.ModeWrite)
		}
		s.Do(t, l.Name(), "HSET", l.Name(), "a peer:1", 1)
		s.Do(t, l.Name(), "PEXPIRE", l.Name(), (4 * soon).Milliseconds())
		came := lockLater(callers.Within(t), l)
		s.listening(t, l, 1)
		channel := s.kind.channel(l.Name())
		if s.kind.Queues {
			seen, err := admin.Inspect(callers.Within(t), l)
			require.NoError(t, err)
			channel += ":" + seen.Queue[0].Text
		}
		s.Do(t, l.Name(), "DEL", l.Name())
		s.Do(t, l.Name(), s.Publish[i%len(s.Publish)], channel, "0")
		require.NoError(t, callers.Must(t, came, soon).Unlock())
	}
	assert.LessOrEqual(t, called.Load(), int64(1), "messages were lost")
	s.free(t, l.Name())
}

func manyRenewed(t *testing.T, s suite) {
	t.Helper()
	const lease = 12 * time.Second // longer than the machine may stall
	many := testlevel.Rounds(30, 200)
	c := s.Client(t, redlatch.WithWatchdogTimeout(lease))
	holds, ends := make([]*rlock.Hold, many), make([]time.Time, many)
	for i := range holds {
		h, err := s.kind.New(c, fmt.Sprintf("%s-%d", redistest.Key(t), i)).Lock(callers.Within(t))
		require.NoError(t, err)
		holds[i], ends[i] = h, time.Now().Add(h.Remaining())
	}
	for i, h := range holds {
		require.Eventually(t, func() bool { return time.Now().Add(h.Remaining()).After(ends[i].Add(time.Second)) }, soon, 5*time.Millisecond)
		require.NoError(t, h.Err())
		require.NoError(t, h.Unlock())
	}
}

func forgotten(t *testing.T, s suite) {
	t.Helper()
	l := s.lock(t, redlatch.WithWatchdogTimeout(10*time.Second))
	hold, err := l.Lock(callers.Within(t))
	require.NoError(t, err)
	s.Do(t, l.Name(), "DEL", l.Name())
	select {
	case <-hold.Context(t.Context()).Done():
		require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
	case <-time.After(soon):
		t.Fatal("the holder is not notified")
	}
	s.free(t, l.Name())
}

func givingUp(t *testing.T, s suite) {
	t.Helper()
	l := s.lock(t)
	other := s.same(t, l)
	hold, err := l.Lock(callers.Within(t))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(callers.Within(t))
	came := lockLater(ctx, other)
	s.listening(t, l, 1)
	cancel()
	got := <-came
	require.ErrorIs(t, got.Err, context.Canceled)
	_, err = other.Lock(callers.Within(t), rlock.WithWait(2*time.Second))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	require.NoError(t, hold.Unlock())
	s.free(t, l.Name())
	require.Eventually(t, func() bool { return s.listenersOf(t, l.Name()) == 0 }, soon, 5*time.Millisecond, "a waiter still listens")
}

func closing(t *testing.T, s suite) {
	t.Helper()
	l := s.lock(t)
	c := s.opened(t)
	hold, err := l.Lock(callers.Within(t))
	require.NoError(t, err)
	came := lockLater(callers.Within(t), s.kind.New(c, l.Name()))
	s.listening(t, l, 1)
	require.NoError(t, c.Close())
	require.ErrorIs(t, (<-came).Err, redlatch.ErrClosed)
	require.NoError(t, hold.Unlock())
	s.free(t, l.Name())
}

func inOrder(t *testing.T, s suite) {
	t.Helper()
	const waiters = 10
	l := s.lock(t)
	locks := []*rlock.Lock{l, s.same(t, l)}
	hold, err := l.Lock(callers.Within(t))
	require.NoError(t, err)
	served := make(chan int, waiters)
	for i := range waiters {
		came := lockLater(callers.Within(t), locks[i%2])
		go func() {
			got := <-came
			if assert.NoError(t, got.Err) {
				served <- i
				assert.NoError(t, got.Hold.Unlock())
			}
		}()
		s.listening(t, l, i+1)
	}
	require.NoError(t, hold.Unlock())
	for want := range waiters {
		select {
		case got := <-served:
			require.Equal(t, want, got)
		case <-time.After(soon):
			t.Fatalf("waiter %d is not served", want)
		}
	}
	s.free(t, l.Name())
}

func deadWaiter(t *testing.T, s suite) {
	t.Helper()
	l := s.lock(t, redlatch.WithDeadWaiterGrace(5*time.Second))
	dead := codec.NewOwner(s.Client(t).ID(), 7).String()
	s.Do(t, l.Name(), "RPUSH", codec.QueueKey(l.Name()), dead)
	s.Do(t, l.Name(), "ZADD", codec.TimeoutKey(l.Name()), time.Now().Add(5*time.Minute).UnixMilli(), dead)
	require.NoError(t, callers.Must(t, lockLater(callers.Within(t), l), soon).Unlock())
	s.free(t, l.Name())
}

// LeavesInTime checks that Lock makes only one attempt while replies are lost, returns when its context ends, and
// releases the lock. Replies are lost after hush until speak is called.
func (d Deployment) LeavesInTime(t *testing.T, hush, speak func()) {
	t.Helper()
	for _, kind := range Kinds {
		s := suite{Deployment: d, kind: kind}
		l := s.lock(t)
		hold, err := l.Lock(callers.Within(t))
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
		hush()
		ctx, cancel := context.WithCancel(t.Context())
		came := lockLater(ctx, l)
		require.Eventually(t, func() bool {
			counts, _ := s.Do(t, l.Name(), "HVALS", l.Name()).([]any)
			return len(counts) == 1 && assert.Equal(t, []byte("1"), counts[0], "the acquire ran once")
		}, soon, time.Millisecond, "%s: it never ran", kind.Name)
		cancel()
		select {
		case got := <-came:
			require.ErrorIs(t, got.Err, context.Canceled, kind.Name)
		case <-time.After(soon):
			require.FailNow(t, "the call does not return", kind.Name)
		}
		speak()
		s.free(t, l.Name())
		hold, err = l.Lock(callers.Within(t))
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
	}
}

type patient struct{}

func (patient) Started()    {}
func (patient) Waits() bool { return true }

// Leads checks that Lead returns if there are no other callers. It closes the transport.
func Leads(t *testing.T, tr transport.Transport) {
	t.Helper()
	defer func() { require.NoError(t, tr.Close()) }()
	l, ok := tr.(builtin.Leader)
	require.True(t, ok)
	require.True(t, l.Leads(tr))
	led := 0
	for limit := time.Now().Add(20 * time.Second); led < 5 && time.Now().Before(limit); {
		came := make(chan error, 1)
		call := &transport.Call{Command: "GET", Args: []any{"lead"}, NumKeys: 1}
		l.Lead(t.Context(), call, func(_ any, err error) { came <- err }, patient{})
		led += len(came)
		require.NoError(t, <-came)
	}
	require.Equal(t, 5, led)
}
