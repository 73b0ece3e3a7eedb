package rfairlock_test

import (
	"context"
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

// The judge of an order is the server: the order of the queue, by RPUSH, and of
// the grants, by HSET, as its MONITOR reports them.

// umpire watches a fair lock.
type umpire struct {
	conn redis.Conn
	done chan struct{}
	// Read after done is closed.
	granted []int // when each had come into the queue, in the order of getting the lock; -1: never
}

const whistle = "the game is over"

// watch begins to watch a lock.
func watch(t *testing.T, srv *redistest.Server, name string) *umpire {
	t.Helper()
	u := &umpire{conn: srv.Dial(t), done: make(chan struct{})}
	_, err := u.conn.Do("MONITOR")
	require.NoError(t, err)
	push, grant := fmt.Sprintf("%q %q ", "RPUSH", codec.QueueKey(name)), fmt.Sprintf("%q %q ", "HSET", name)
	go func() {
		defer close(u.done)
		came := map[string]int{} // by owner: it may come again, when it has had the lock
		for n := 0; ; n++ {
			line, err := redis.String(u.conn.Receive())
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

// inversions ends the watch and returns how many of the queued waiters got
// the lock after a waiter that had come later, and how many had been queued
// at all.
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

// takeTurns takes the lock rounds times with each of so many goroutines.
func takeTurns(ctx context.Context, l *rlock.Lock, goroutines, rounds int) error {
	errs := make(chan error, goroutines)
	for range goroutines {
		go func() {
			var err error
			for range rounds {
				var hold *rlock.Hold
				if hold, err = l.Lock(ctx); err != nil {
					break
				}
				if err = hold.Unlock(); err != nil {
					break
				}
			}
			errs <- err
		}()
	}
	var first error
	for range goroutines {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
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

// Redisson's default pool of subscriptions starves with so many.
func TestManyWaitersOfOneProcessAllAcquireInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	for _, n := range []int{200, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			if n > 200 {
				testlevel.All(t, "load: 1,000 waiters")
			}
			srv := redistest.Start(t)
			client := connect(t, srv.URL(), noPoll(), redlatch.WithCommandTimeout(soon)) // the machine may be busy
			l := rfairlock.New(client, redistest.Key(t))
			holdByHand(t, srv, l.Name(), forever)
			var got []string // the lock guards it
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
			require.Equal(t, 2, srv.Clients(t), "one for commands, one for all subscriptions")
			began := time.Now()
			freeByHand(t, srv, l.Name())
			wg.Wait()
			t.Logf("%.0f hand-overs per second", float64(n)/time.Since(began).Seconds())
			require.Equal(t, queue, got)
			requireNoTrace(t, srv, l.Name())
		})
	}
}

func TestOneProcessQueuesInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	l := rfairlock.New(connect(t, srv.URL(), noPoll()), redistest.Key(t))
	hold := take(t, l)
	all := queueUp(t.Context(), t, srv, l, 20)
	require.NoError(t, hold.Unlock())
	for i, w := range all {
		h := w.acquired(t, promptly)
		for _, later := range all[i+1:] {
			later.stillWaits(t)
		}
		require.NoError(t, h.Unlock())
	}
}

// Callers that do not queue do not overtake queued waiters.
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
		require.Empty(t, tried, "another owner got in between")
		if w == last {
			cancel()
		}
		require.NoError(t, h.Unlock())
	}
	<-stop
}
