package compat

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
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// wakeRounds is how often each direction is measured.
	wakeRounds = 100
	// wakeBound is far below what a waiter sleeps that receives no message, 10 seconds here
	// and the holder's 30 in Java, and far above what a busy machine needs.
	wakeBound = 5 * time.Second
)

// requireClean requires that the lock is free and its channel has no listeners. Redisson's
// latches may be there for a while.
func requireClean(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	requireCleanOn(t, s, name, codec.LockChannel(name))
}

// requireCleanOn is requireClean for a lock with another channel.
func requireCleanOn(t *testing.T, s *redistest.Server, name, channel string) {
	t.Helper()
	exists, err := redis.Int(s.Do(t, "EXISTS", name), nil)
	require.NoError(t, err)
	require.Zero(t, exists)
	awaitListenersOn(t, s, channel, 0)
}

// awaitListeners waits until so many listen to a lock's channel.
func awaitListeners(t *testing.T, s *redistest.Server, name string, want int) {
	t.Helper()
	awaitListenersOn(t, s, codec.LockChannel(name), want)
}

func awaitListenersOn(t *testing.T, s *redistest.Server, channel string, want int) {
	t.Helper()
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		counts, err := redis.Values(s.Do(t, "PUBSUB", "NUMSUB", channel), nil)
		require.NoError(ct, err)
		require.Equal(ct, int64(want), counts[1])
	}, atMost, time.Millisecond, "listeners of %s", channel)
}

// parked returns when a waiter that has just begun has nothing left to do but to
// sleep: its second attempt is the one after the subscription.
func (o observed) parked(t *testing.T, name string) {
	t.Helper()
	for range 2 {
		_, err := o.watch.Until(name)
		require.NoError(t, err)
	}
}

// alarm is a lock that one language frees while the other waits.
type alarm struct {
	observed
	java *java
	lock *rlock.Lock
}

// testWakeUp measures how long after a release the waiter of the other language
// has the lock.
func (c *compat) testWakeUp(t *testing.T) {
	o := observe(t)
	j, client := connect(t, c.peer, o.server, nil), open(t, o.server)
	for _, direction := range []struct {
		name string
		wake func(alarm, *testing.T) time.Duration
	}{
		{"Go wakes Java", alarm.goWakesJava},
		{"Java wakes Go", alarm.javaWakesGo},
	} {
		t.Run(direction.name, func(t *testing.T) {
			a := alarm{o, j, rlock.New(client, redistest.Key(t))}
			var p50, p99, most time.Duration
			c.table.note(t, c.release.String(), direction.name+", ms", func() string {
				return fmt.Sprintf("p50 %s p99 %s max %s", ms(p50), ms(p99), ms(most))
			})
			var all []time.Duration
			for range wakeRounds {
				awaitListeners(t, o.server, a.lock.Name(), 0)
				all = append(all, direction.wake(a, t))
			}
			slices.Sort(all)
			p50, p99, most = all[len(all)/2], all[(len(all)*99+99)/100-1], all[len(all)-1]
			t.Logf("Redisson %s: p50 %v, p99 %v, max %v", c.release, p50, p99, most)
			require.Less(t, most, wakeBound)
		})
	}
}

// ms is a time in milliseconds, for the table.
func ms(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64) }

func (a alarm) goWakesJava(t *testing.T) time.Duration {
	t.Helper()
	hold, err := a.lock.Lock(t.Context())
	require.NoError(t, err)
	a.about(t, a.lock.Name())
	waiter := a.java.begin(peer.Command{"op": "lock", "name": a.lock.Name()})
	a.parked(t, a.lock.Name())
	released := time.Now()
	require.NoError(t, hold.Unlock())
	reply, err := waiter.Wait(atMost)
	require.NoError(t, err)
	a.java.do(t, peer.Command{"op": "unlock", "name": a.lock.Name()})
	return reply.Ended().Sub(released)
}

func (a alarm) javaWakesGo(t *testing.T) time.Duration {
	t.Helper()
	a.java.do(t, peer.Command{"op": "lock", "name": a.lock.Name()})
	a.about(t, a.lock.Name())
	waiter := lockLater(t, a.lock)
	a.parked(t, a.lock.Name())
	reply := a.java.do(t, peer.Command{"op": "unlock", "name": a.lock.Name()})
	got := waiter.await(t, atMost)
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

// await demands that the wait ends well, in time.
func (w goWaiter) await(t *testing.T, by time.Duration) goOutcome {
	t.Helper()
	select {
	case o := <-w.outcome:
		require.NoError(t, o.err)
		return o
	case <-time.After(by):
		require.FailNow(t, "the waiter did not get the lock", "in %v", by)
		return goOutcome{}
	}
}
