package compat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// wakeBound is much shorter than a waiter sleeps if it does not receive a message.
const wakeBound = 5 * time.Second

// requireClean requires that the lock has been removed. It ignores Redisson's latches, which may remain for a while.
func requireClean(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	requireCleanOn(t, s, name, codec.LockChannel(name))
}

func requireCleanOn(t *testing.T, s *redistest.Server, name, channel string) {
	t.Helper()
	exists := must(redis.Int(s.Do(t, "EXISTS", name), nil))(t)
	require.Zero(t, exists)
	awaitListenersOn(t, s, channel, 0)
}

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

// parked waits for the second attempt of a new waiter, which it makes after it has subscribed.
func (o observed) parked(t *testing.T, name string) {
	t.Helper()
	for range 2 {
		must(o.watch.Until(name))(t)
	}
}

// rwParks allows for Java's writers, which wake only threads that are already parked.
const rwParks = 300 * time.Millisecond

var wakeUps = []struct {
	frees, gets, row string
	rounds           int
	parks            bool // a message wakes only Java threads that are already parked
	channel          func(name string) string
}{
	{"plain", "plain", "", 100, false, codec.LockChannel},
	{"fair", "fair", "fair: ", 10, false, codec.LockChannel},
	{"write", "read", "write, read: ", 10, true, protocol.ReadWriteChannel},
	{"write", "write", "write, write: ", 10, true, protocol.ReadWriteChannel},
	{"read", "write", "read, write: ", 10, true, protocol.ReadWriteChannel},
	{withIDs, withIDs, "permits: ", 4, true, protocol.SemaphoreChannel},
	{counting, counting, "semaphore: ", 4, true, protocol.SemaphoreChannel},
	{"plain", "spin", "plain, spin: ", 4, false, codec.LockChannel},
	{nonReentrant, nonReentrant, "non-reentrant: ", 4, true, codec.LockChannel},
	{nonReentrant + "Fair", nonReentrant + "Fair", "non-reentrant fair: ", 4, true, codec.LockChannel},
}

// nonReentrant is a kind of Java lock that is a plain lock on the server.
const nonReentrant = "nonReentrant"

func (c *compat) testWakeUp(t *testing.T) {
	o := observe(t)
	j := connect(t, c.peer, o.server, peer.Command{"watchdog": 30000})
	client := open(t, o.server, redlatch.WithPollCap(objectPoll))
	for _, w := range wakeUps {
		if strings.HasPrefix(w.frees, nonReentrant) && !c.release.HasNonReentrant() {
			continue
		}
		name := redistest.Key(t)
		if w.channel(name) == protocol.SemaphoreChannel(name) {
			o.server.Do(t, "SET", name, 1)
		}
		ours := func(kind string) member { return &goSide{client: client, kind: kind, name: name} }
		theirs := func(kind string) member { return &javaMember{java: j, kind: kind, name: name} }
		for _, d := range []struct {
			does        string
			frees, gets member
		}{
			{"Go wakes Java", ours(w.frees), theirs(w.gets)},
			{"Java wakes Go", theirs(w.frees), ours(w.gets)},
		} {
			t.Run(w.row+d.does, func(t *testing.T) {
				var all []time.Duration
				c.table.note(t, c.release.String(), w.row+d.does+", ms", func() string {
					last := len(all) - 1
					return fmt.Sprintf("p50 %s p99 %s max %s", ms(all[len(all)/2]), ms(all[last*99/100]), ms(all[last]))
				})
				for range w.rounds {
					awaitListenersOn(t, o.server, w.channel(name), 0)
					all = append(all, o.wakes(t, name, d.frees, d.gets, w.parks))
				}
				slices.Sort(all)
				require.Less(t, all[len(all)-1], wakeBound)
			})
		}
	}
}

func ms(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1000, 'f', 1, 64) }

// wakes returns the time from a release until the other member has acquired the lock.
func (o observed) wakes(t *testing.T, name string, frees, gets member, parks bool) time.Duration {
	t.Helper()
	frees.lock(t)
	frees.locked(t, atMost)
	o.about(t, name)
	gets.lock(t)
	o.parked(t, name)
	if j, ok := gets.(*javaMember); ok && parks {
		j.parked(t)
	}
	released := time.Now()
	unlock(t, frees)
	took := gets.locked(t, atMost).Sub(released)
	unlock(t, gets)
	return took
}

type goWaiter[T any] struct {
	outcome chan goOutcome[T]
}

type goOutcome[T any] struct {
	value T
	at    time.Time
	err   error
}

func getLater[T any](call func() (T, error)) goWaiter[T] {
	w := goWaiter[T]{make(chan goOutcome[T], 1)}
	go func() {
		value, err := call()
		w.outcome <- goOutcome[T]{value, time.Now(), err}
	}()
	return w
}

func lockLater(t *testing.T, lock *rlock.Lock, opts ...rlock.Option) goWaiter[*rlock.Hold] {
	t.Helper()
	return getLater(func() (*rlock.Hold, error) { return lock.Lock(t.Context(), opts...) })
}

func (w goWaiter[T]) await(t *testing.T, by time.Duration) goOutcome[T] {
	t.Helper()
	select {
	case o := <-w.outcome:
		require.NoError(t, o.err)
		return o
	case <-time.After(by):
		require.FailNow(t, "the waiter did not get the lock", "in %v", by)
		return goOutcome[T]{}
	}
}

func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return value
	}
}
