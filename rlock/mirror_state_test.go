package rlock_test

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// mirror has two handles of one lock, as Redisson's tests have, and asks both.
type mirror struct {
	*testing.T
	srv    *redistest.Server
	client *redlatch.Client
	lock   func(*redlatch.Client, string) *rlock.Lock
	old    *rlock.Lock
}

// eachMirror plays with each kind of lock: RedissonFairLockTest has these, too.
func eachMirror(t *testing.T, play func(t *testing.T, m *mirror)) {
	t.Helper()
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv, client := onShared(t, noPoll())
			play(t, &mirror{T: t, srv: srv, client: client, lock: lock, old: lock(client, redistest.Key(t))})
		})
	}
}

func (m *mirror) again() *rlock.Lock { return m.lock(m.client, m.old.Name()) }

func (m *mirror) isLocked(want bool) {
	m.Helper()
	for _, l := range []*rlock.Lock{m.old, m.again()} {
		got, err := l.IsLocked(m.Context())
		require.NoError(m, err)
		require.Equal(m, want, got)
	}
}

func (m *mirror) holds(h *rlock.Hold, count int64) {
	m.Helper()
	for _, l := range []*rlock.Lock{m.old, m.again()} {
		n, err := l.HoldCount(m.Context(), h.Owner())
		require.NoError(m, err)
		require.Equal(m, count, n)
		held, err := l.IsHeldBy(m.Context(), h.Owner())
		require.NoError(m, err)
		require.Equal(m, count > 0, held)
	}
}

func (m *mirror) left() time.Duration {
	m.Helper()
	left, err := m.again().TTL(m.Context())
	require.NoError(m, err)
	return left
}

func TestMirrorForceUnlock(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		hold := take(t, m.old)
		forced, err := m.again().ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
		m.isLocked(false)
		forced, err = m.old.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.False(t, forced)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	})
}

func TestMirrorExpire(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		const lease = 2 * time.Second
		began := time.Now()
		hold := take(t, m.old, rlock.WithLease(lease))
		next := await(t.Context(), m.again()).acquired(t, soon)
		require.GreaterOrEqual(t, time.Since(began), lease*4/5, "before the holder learns of its loss")
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		m.holds(next, 1)
		require.NoError(t, next.Unlock())
	})
}

func TestMirrorRemainTimeToLive(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		hold := take(t, m.old, rlock.WithLease(time.Hour))
		requireLeft(t, m.left(), time.Hour)
		require.NoError(t, hold.Unlock())
		require.Zero(t, m.left(), "Redisson answers -2")
		hold = take(t, m.old)
		requireLeft(t, m.left(), 30*time.Second)
		require.NoError(t, hold.Unlock())
	})
}

func TestMirrorAutoExpire(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	holder := connect(t, srv.URL(), redlatch.WithWatchdogTimeout(shortLease))
	take(t, rlock.New(holder, name))
	awaitRenewal(t, srv, name)
	require.NoError(t, holder.Close())
	require.True(t, locked(t, srv, name))
	until(t, soon, "the lock frees itself", func() bool { return !locked(t, srv, name) })
}

func TestMirrorGetHoldCount(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		for range 2 {
			hold := take(t, m.old)
			m.holds(hold, 1)
			require.NoError(t, hold.Unlock())
			m.holds(hold, 0)
		}
	})
}

func TestMirrorIsHeldByCurrentThread(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		hold := take(t, m.old)
		m.holds(hold, 1)
		require.NoError(t, hold.Unlock())
		m.holds(hold, 0)
	})
}

func TestMirrorIsHeldByCurrentThreadOtherThread(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		other := redlatch.NewOwner(m.client.ID(), -1)
		hold := take(t, m.old)
		for range 2 {
			held, err := m.again().IsHeldBy(t.Context(), other)
			require.NoError(t, err)
			require.False(t, held)
			require.NoError(t, hold.Unlock())
		}
	})
}

func TestMirrorIsLocked(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		m.isLocked(false)
		hold := take(t, m.old)
		m.isLocked(true)
		require.NoError(t, hold.Unlock())
		m.isLocked(false)
	})
}

func TestMirrorIsLockedOtherThread(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		hold := take(t, m.old)
		other := m.lock(connect(t, m.srv.URL()), m.old.Name())
		for _, want := range []bool{true, false} {
			got, err := other.IsLocked(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.NoError(t, hold.Unlock())
		}
	})
}

// A thread that does not hold the lock has no Hold to unlock, so this is about
// one whose hold is over.
func TestMirrorUnlockFail(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		former := take(t, m.old)
		m.srv.Do(t, "DEL", m.old.Name())
		holder := take(t, m.again())
		require.ErrorIs(t, former.Unlock(), redlatch.ErrLost)
		m.isLocked(true)
		m.holds(holder, 1)
		require.NoError(t, holder.Unlock())
		m.isLocked(false)
	})
}

func TestMirrorLockUnlock(t *testing.T) {
	t.Parallel()
	eachMirror(t, func(t *testing.T, m *mirror) {
		t.Helper()
		for range 2 {
			require.NoError(t, take(t, m.old).Unlock())
			m.isLocked(false)
		}
	})
}

func TestMirrorLockListener(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithArgs("--notify-keyspace-events", "Egx"))
	conn := srv.Dial(t)
	require.NoError(t, conn.Send("PSUBSCRIBE", "__keyevent@*"))
	require.NoError(t, conn.Flush())
	_, err := conn.Receive()
	require.NoError(t, err)
	l := rlock.New(connect(t, srv.URL()), "job")

	require.NoError(t, take(t, l).Unlock())
	require.Equal(t, "del", event(t, conn))
	require.NoError(t, take(t, l, rlock.WithLease(time.Second)).LetExpire())
	require.Equal(t, "expired", event(t, conn))
}

// event returns the next event of the lock that ends it.
func event(t *testing.T, conn redis.Conn) string {
	t.Helper()
	for {
		got := receive(t, conn)
		if name := got[2][len("__keyevent@0__:"):]; name != "expire" {
			require.Equal(t, "job", got[3])
			return name
		}
	}
}
