package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/compat/peer"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/rlock"
)

const (
	fleetRounds  = 2000
	fleetClients = 2
	fleetThreads = 4 // of each client

	// wakeRounds is how often each direction is measured.
	wakeRounds = 100
	// wakeBound is far below what a waiter sleeps that hears no message, 10
	// seconds here and the holder's 30 in Java, and far above what a busy
	// machine needs.
	wakeBound = 5 * time.Second
)

// testFleet lets Go and Java count together. The counter is read and written in
// two steps, so every lack of exclusion loses rounds.
func (c *compat) testFleet(t *testing.T) {
	s := redistest.Start(t)
	name, key := redistest.Key(t), redistest.Key(t)
	calls := c.javaCounts(t, s, name, key)
	ours := goCounts(t, s, name, key)
	var theirs int64
	var longest time.Duration
	for _, call := range calls {
		reply, err := call.Wait(2 * time.Minute)
		require.NoError(t, err)
		var tally struct{ Rounds, Longest int64 }
		require.NoError(t, reply.Into(&tally))
		theirs += tally.Rounds
		longest = max(longest, time.Duration(tally.Longest)*time.Microsecond)
	}
	count, err := redis.Int64(s.Do(t, "GET", key), nil)
	require.NoError(t, err)
	require.Equal(t, int64(fleetRounds), count)
	require.Equal(t, count, ours+theirs, "rounds were lost: two were inside at once")
	require.Positive(t, ours)
	require.Positive(t, theirs)
	requireClean(t, s, name)
	share := 100 * ours / count
	t.Logf("Redisson %s: %d rounds, Go %d %%, Java %d %%, longest wait in Java %v", c.release, count, share, 100-share, longest)
	if share < 30 || share > 70 {
		t.Logf("one side had less than 30 %% of the rounds (the plain lock is not fair)")
	}
	c.table.note(t, c.release.String(), "exclusion", func() string {
		return fmt.Sprintf("%d rounds, Go %d %%", count, share)
	})
}

// javaCounts begins the Java side. Its replies come when the counter is full.
func (c *compat) javaCounts(t *testing.T, s *redistest.Server, name, key string) []*peer.Call {
	t.Helper()
	var calls []*peer.Call
	for range fleetClients {
		j := connect(t, c.peer, s, nil)
		for n := range fleetThreads {
			calls = append(calls, j.begin(peer.Command{
				"op": "count", "thread": fmt.Sprint(j.client, n), "name": name,
				"address": s.URL(), "key": key, "total": fleetRounds,
			}))
		}
	}
	return calls
}

// goCounts is the Go side and returns its rounds.
func goCounts(t *testing.T, s *redistest.Server, name, key string) int64 {
	t.Helper()
	type tally struct {
		rounds int64
		err    error
	}
	tallies := make(chan tally, fleetClients*fleetThreads)
	for range fleetClients {
		lock := rlock.New(open(t, s), name)
		for range fleetThreads {
			conn := s.Dial(t)
			go func() {
				rounds, err := countUp(t.Context(), lock, conn, key)
				tallies <- tally{rounds, err}
			}()
		}
	}
	var sum int64
	for range cap(tallies) {
		got := <-tallies
		require.NoError(t, got.err)
		sum += got.rounds
	}
	return sum
}

func countUp(ctx context.Context, lock *rlock.Lock, conn redis.Conn, key string) (rounds int64, err error) {
	for full := false; !full && err == nil; {
		err = lock.Do(ctx, func(context.Context) error {
			count, err := redis.Int64(conn.Do("GET", key))
			if err != nil && !errors.Is(err, redis.ErrNil) {
				return err
			}
			if full = count >= fleetRounds; full {
				return nil
			}
			rounds++
			_, err = conn.Do("SET", key, strconv.FormatInt(count+1, 10))
			return err
		})
	}
	return rounds, err
}

// requireClean demands that nobody holds the lock or listens to it any more.
// Redisson's latches may be there for a while.
func requireClean(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	exists, err := redis.Int(s.Do(t, "EXISTS", name), nil)
	require.NoError(t, err)
	require.Zero(t, exists)
	awaitListeners(t, s, name, 0)
}

// awaitListeners waits until so many listen to a lock's channel.
func awaitListeners(t *testing.T, s *redistest.Server, name string, want int) {
	t.Helper()
	channel := codec.LockChannel(name)
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		counts, err := redis.Values(s.Do(t, "PUBSUB", "NUMSUB", channel), nil)
		require.NoError(ct, err)
		require.Equal(ct, int64(want), counts[1])
	}, atMost, time.Millisecond, "listeners of %s", channel)
}

// testWakeUp measures how long after a release the waiter of the other language
// has the lock.
func (c *compat) testWakeUp(t *testing.T) {
	s := redistest.Start(t)
	j := connect(t, c.peer, s, nil)
	client := open(t, s)
	for direction, round := range map[string]func(*testing.T, *redistest.Server, *java, *rlock.Lock) time.Duration{
		"Go wakes Java": goWakesJava,
		"Java wakes Go": javaWakesGo,
	} {
		t.Run(direction, func(t *testing.T) {
			lock := rlock.New(client, redistest.Key(t))
			var all []time.Duration
			for range wakeRounds {
				awaitListeners(t, s, lock.Name(), 0)
				all = append(all, round(t, s, j, lock))
			}
			slices.Sort(all)
			p50, p99, most := all[len(all)/2], all[(len(all)*99+99)/100-1], all[len(all)-1]
			t.Logf("%s, Redisson %s: p50 %v, p99 %v, max %v", direction, c.release, p50, p99, most)
			require.Less(t, most, wakeBound)
			c.table.note(t, c.release.String(), direction, func() string {
				return fmt.Sprintf("p50 %v, max %v", p50.Round(10*time.Microsecond), most.Round(10*time.Microsecond))
			})
		})
	}
}

func goWakesJava(t *testing.T, s *redistest.Server, j *java, lock *rlock.Lock) time.Duration {
	t.Helper()
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	waiter := j.begin(peer.Command{"op": "lock", "name": lock.Name()})
	awaitListeners(t, s, lock.Name(), 1)
	released := time.Now()
	require.NoError(t, hold.Unlock())
	reply, err := waiter.Wait(atMost)
	require.NoError(t, err)
	j.do(t, peer.Command{"op": "unlock", "name": lock.Name()})
	return reply.Ended().Sub(released)
}

func javaWakesGo(t *testing.T, s *redistest.Server, j *java, lock *rlock.Lock) time.Duration {
	t.Helper()
	j.do(t, peer.Command{"op": "lock", "name": lock.Name()})
	waiter := lockLater(t, lock)
	awaitListeners(t, s, lock.Name(), 1)
	reply := j.do(t, peer.Command{"op": "unlock", "name": lock.Name()})
	got := waiter.await(t)
	require.NoError(t, got.hold.Unlock())
	return got.at.Sub(reply.Began())
}

// goWaiter is a call of Lock that waits.
type goWaiter struct {
	outcome chan goOutcome
}

type goOutcome struct {
	hold *rlock.Hold
	at   time.Time
	err  error
}

func lockLater(t *testing.T, lock *rlock.Lock, opts ...rlock.Option) goWaiter {
	t.Helper()
	w := goWaiter{make(chan goOutcome, 1)}
	go func() {
		hold, err := lock.Lock(t.Context(), opts...)
		w.outcome <- goOutcome{hold, time.Now(), err}
	}()
	return w
}

// await demands that the wait ends well.
func (w goWaiter) await(t *testing.T) goOutcome {
	t.Helper()
	select {
	case o := <-w.outcome:
		require.NoError(t, o.err)
		return o
	case <-time.After(atMost):
		require.FailNow(t, "the waiter did not get the lock")
		return goOutcome{}
	}
}
