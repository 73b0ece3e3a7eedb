package rlock_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// criticalSection counts the callers inside. Only the lock under test guards the plain counter, so the
// race detector watches it, too.
type criticalSection struct {
	inside  atomic.Int64
	entered int
}

func (r *criticalSection) visit(t testing.TB) {
	t.Helper()
	assert.EqualValues(t, 1, r.inside.Add(1), "one at a time")
	r.entered++
	r.inside.Add(-1)
}

// visitLocked takes the lock n times, and visits each time.
func (r *criticalSection) visitLocked(t testing.TB, l *rlock.Lock, n int) {
	t.Helper()
	for range n {
		hold, err := l.Lock(t.Context())
		if !assert.NoError(t, err) {
			return
		}
		r.visit(t)
		assert.NoError(t, hold.Unlock())
	}
}

func TestU11OneLockValueSharedByAHundredGoroutinesLetsOneInAtATime(t *testing.T) {
	t.Parallel()
	_, client := onShared(t, noPoll())
	shared := rlock.New(client, redistest.Key(t))
	var r criticalSection
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { r.visitLocked(t, shared, 5) })
	}
	wg.Wait()
	require.Equal(t, 500, r.entered)
}

// In Redisson a second lock by the same thread re-enters. Here every call is an
// owner of its own.
func TestU11TheSameGoroutineExcludesItself(t *testing.T) {
	t.Parallel()
	_, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	first := take(t, l)
	_, err := l.TryLock(t.Context())
	checkHeld(t, err)
	require.NoError(t, first.Unlock())
	second := take(t, l)
	require.NotEqual(t, first.Owner(), second.Owner())
	require.NoError(t, second.Unlock())
}

// Half of the callers do not wait: their failed attempts must not disturb the waiters.
func TestU11SeveralClientsLetOneInAtATime(t *testing.T) {
	t.Parallel()
	rounds := testlevel.Rounds(3, 8)
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	var r criticalSection
	var tried atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		l := rlock.New(connect(t, srv.URL(), noPoll()), name)
		for range 8 {
			wg.Go(func() { r.visitLocked(t, l, rounds) })
			wg.Go(func() {
				for range 4 * rounds {
					hold, err := l.TryLock(t.Context())
					if err != nil {
						checkHeld(t, err)
						continue
					}
					r.visit(t)
					tried.Add(1)
					assert.NoError(t, hold.Unlock())
				}
			})
		}
	}
	wg.Wait()
	require.EqualValues(t, 8*8*rounds+int(tried.Load()), r.entered)
}
