package rlock_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// criticalSection counts the callers inside a critical section. The plain counter is
// guarded by nothing but the lock under test, so the race detector watches,
// too.
type criticalSection struct {
	inside  atomic.Int64
	entered int
}

// visit goes in, stays for a while and leaves.
func (r *criticalSection) visit(t testing.TB, stay time.Duration) {
	t.Helper()
	assert.EqualValues(t, 1, r.inside.Add(1), "one at a time")
	r.entered++
	if stay > 0 {
		time.Sleep(stay) // the work
	}
	r.inside.Add(-1)
}

// visitLocked takes the lock n times, and goes in each time.
func (r *criticalSection) visitLocked(t testing.TB, l *rlock.Lock, n int, stay time.Duration) {
	t.Helper()
	for range n {
		hold, err := l.Lock(t.Context())
		if !assert.NoError(t, err) {
			return
		}
		r.visit(t, stay)
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
		wg.Go(func() { r.visitLocked(t, shared, 5, 0) })
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

func TestU11SeveralClientsLetOneInAtATime(t *testing.T) {
	t.Parallel()
	rounds := testlevel.Rounds(3, 8)
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	var r criticalSection
	var wg sync.WaitGroup
	for range 8 {
		l := rlock.New(connect(t, srv.URL(), noPoll()), name)
		for range 8 {
			wg.Go(func() { r.visitLocked(t, l, rounds, 0) })
		}
	}
	wg.Wait()
	require.Equal(t, 8*8*rounds, r.entered)
}

// Half of the callers do not wait: their failed attempts must not disturb the
// waiting ones.
func TestU11TryLockAndLockTogetherLetOneInAtATime(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	var r criticalSection
	var tried, waited atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		l := rlock.New(connect(t, srv.URL(), noPoll()), name)
		for range 4 {
			wg.Go(func() {
				r.visitLocked(t, l, 25, 0)
				waited.Add(25)
			})
			wg.Go(func() {
				for range 100 {
					hold, err := l.TryLock(t.Context())
					if err != nil {
						checkHeld(t, err)
						continue
					}
					r.visit(t, rand.N(50*time.Microsecond))
					tried.Add(1)
					assert.NoError(t, hold.Unlock())
				}
			})
		}
	}
	wg.Wait()
	require.EqualValues(t, waited.Load()+tried.Load(), r.entered)
}
