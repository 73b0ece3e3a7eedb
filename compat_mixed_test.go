package redlatch_test

import (
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
	// wakeRounds is how often each direction is measured.
	wakeRounds = 100
	// wakeBound is far below what a waiter sleeps that hears no message, 10
	// seconds here and the holder's 30 in Java, and far above what a busy
	// machine needs.
	wakeBound = 5 * time.Second
)

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
			c.table.note(t, c.release.String(), direction+", ms", func() string {
				return fmt.Sprintf("p50 %s p99 %s max %s", ms(p50), ms(p99), ms(most))
			})
		})
	}
}

// ms is a time in milliseconds, for the table.
func ms(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64) }

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
