package rfairlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// umpire reads the order of the queue, by RPUSH, and of the grants, by HSET, with MONITOR.
type umpire struct {
	done    chan struct{}
	granted []int // by grant: when the owner was queued, -1 if never; set when done is closed
}

const whistle = "the game is over"

// watch starts an umpire of a lock.
func watch(t *testing.T, srv *redistest.Server, name string) *umpire {
	t.Helper()
	u, conn := &umpire{done: make(chan struct{})}, srv.Dial(t)
	_, err := conn.Do("MONITOR")
	require.NoError(t, err)
	push, grant := fmt.Sprintf("%q %q ", "RPUSH", codec.QueueKey(name)), fmt.Sprintf("%q %q ", "HSET", name)
	go func() {
		defer close(u.done)
		came := map[string]int{} // by owner, which may be reused
		for n := 0; ; n++ {
			line, err := redis.String(conn.Receive())
			if err != nil || strings.Contains(line, whistle) {
				return
			}
			if _, rest, ok := strings.Cut(line, push); ok {
				came[strings.Trim(rest, `"`)] = n
			} else if _, rest, ok := strings.Cut(line, grant); ok {
				owner, count, _ := strings.Cut(strings.Trim(rest, `"`), `" "`)
				assert.Equal(t, "1", count)
				at, waited := came[owner]
				if !waited {
					at = -1
				}
				delete(came, owner)
				u.granted = append(u.granted, at)
			}
		}
	}()
	return u
}

// inversions ends the watch. It returns how many queued waiters acquired the lock after a later one,
// and how many were queued.
func (u *umpire) inversions(t *testing.T, srv *redistest.Server) (inverted, queued int) {
	t.Helper()
	srv.Do(t, "ECHO", whistle)
	awaitClosed(t, u.done, "the end of the game")
	last := -1
	for _, n := range u.granted {
		if n < 0 {
			continue
		}
		queued++
		if n < last {
			inverted++
		}
		last = max(last, n)
	}
	return inverted, queued
}

// takeTurns acquires the lock in goroutines, each rounds times.
func takeTurns(ctx context.Context, l *rlock.Lock, goroutines, rounds int) error {
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for n := 0; n < rounds && errs[i] == nil; n++ {
				errs[i] = l.Do(ctx, func(context.Context) error { return nil })
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func TestSeveralClientsAcquireInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	const clients, goroutines = 5, 10
	rounds := testlevel.Rounds(4, 10)
	srv := redistest.Start(t)
	name := redistest.Key(t)
	u := watch(t, srv, name)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range clients {
		l := rfairlock.New(connect(t, srv.URL(), noPoll()), name)
		wg.Go(func() { assert.NoError(t, takeTurns(ctx, l, goroutines, rounds)) })
	}
	wg.Wait()
	inverted, queued := u.inversions(t, srv)
	require.Zero(t, inverted)
	require.Len(t, u.granted, clients*goroutines*rounds)
	require.Greater(t, queued, clients*goroutines*rounds/2)
	requireNoTrace(t, srv, name)
}

// Redisson's default pool of subscriptions is too small for them.
func TestManyWaitersOfOneProcessAllAcquireInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	n := testlevel.Rounds(200, 1000)
	srv := redistest.Start(t)
	client := connect(t, srv.URL(), noPoll(), redlatch.WithCommandTimeout(soon)) // the machine may be busy
	l := rfairlock.New(client, redistest.Key(t))
	holdByHand(t, srv, l.Name(), forever)
	var got []string // guarded by the lock
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			hold, err := l.Lock(t.Context())
			if !assert.NoError(t, err) {
				return
			}
			got = append(got, hold.Owner().String())
			assert.NoError(t, hold.Unlock())
		})
	}
	until(t, time.Minute, "all are queued", func() bool { return len(queueOf(t, srv, l.Name())) == n })
	until(t, time.Minute, "the listeners", func() bool { return len(srv.Channels(t)) == n })
	queue := queueOf(t, srv, l.Name())
	require.Equal(t, 2, srv.Clients(t), "for commands and for subscriptions")
	began := time.Now()
	freeByHand(t, srv, l.Name())
	wg.Wait()
	t.Logf("%.0f hand-overs per second", float64(n)/time.Since(began).Seconds())
	require.Equal(t, queue, got)
	requireNoTrace(t, srv, l.Name())
}

func TestNoCallerOvertakesTheQueue(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	name := redistest.Key(t)
	holder, eager := rfairlock.New(connect(t, srv.URL()), name), rfairlock.New(connect(t, srv.URL()), name)
	hold := take(t, holder)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := make(chan struct{})
	tried := make(chan error, 1)
	go func() {
		defer close(stop)
		for ctx.Err() == nil {
			if hold, err := eager.TryLock(ctx); err == nil {
				tried <- hold.Unlock()
				return
			}
		}
	}()
	all := queueUp(t.Context(), t, srv, rfairlock.New(connect(t, srv.URL(), noPoll()), name), 10)
	last := all[len(all)-1]
	require.NoError(t, hold.Unlock())
	for _, w := range all {
		h := w.acquired(t, promptly)
		require.Empty(t, tried, "TryLock overtook the queue")
		if w == last {
			cancel()
		}
		require.NoError(t, h.Unlock())
	}
	<-stop
}
