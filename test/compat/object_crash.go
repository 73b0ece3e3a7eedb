package compat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// memberPermits is in the environment of a Go process that takes a permit of each of the
// semaphores, whose names stand there, one a line.
const memberPermits = "REDLATCH_TEST_MEMBER_PERMITS"

// permitTrials is how many permits a process holds when it dies, each of a semaphore of its own.
const permitTrials = 50

// permitsLoop takes the permits, says so, and holds them until it is killed.
func permitsLoop(url string, commands <-chan string) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	if err != nil {
		return err
	}
	<-commands
	for _, name := range strings.Split(os.Getenv(memberPermits), "\n") {
		_, taken := rsemaphore.NewExpirable(client, name).TryAcquire(ctx, 1)
		err = errors.Join(err, taken)
	}
	fmt.Println("lock", err)
	<-commands // until it is killed
	return nil
}

// testPermitCrashes ends processes of both languages that hold permits: waiters of both have them
// when the lease is over, and each permit once.
func (c *compat) testPermitCrashes(t *testing.T) {
	t.Helper()
	t.Run("a Go process is killed that holds permits", func(t *testing.T) {
		c.permitCrash(t, true, func(t *testing.T, s *redistest.Server, names []string) member {
			t.Helper()
			m := startGo(t, s.URL(), names[0], memberPermits+"="+strings.Join(names, "\n"))
			m.lock(t)
			m.locked(t, atMost)
			return m
		})
	})
	t.Run("Java halts that holds permits", func(t *testing.T) {
		c.permitCrash(t, false, func(t *testing.T, s *redistest.Server, names []string) member {
			t.Helper()
			j := connect(t, peertest.Start(t, c.program), s, nil)
			for _, name := range names {
				j.do(t, object("permits", "acquire", watchdogMS, msUnit).With(peer.Command{"name": name}))
			}
			return &javaMember{java: j}
		})
	})
}

// permitCrash has a process take the only permit of each of many semaphores, renewed or not, and
// die, while a waiter of either language waits for each.
func (c *compat) permitCrash(t *testing.T, renewed bool, holder func(t *testing.T, s *redistest.Server, names []string) member) {
	t.Helper()
	c.ownLine(t)
	t.Parallel()
	s := redistest.Start(t)
	client := open(t, s, redlatch.WithPollCap(objectPoll))
	living := connect(t, c.peer, s, nil)
	var names []string
	for i := range permitTrials {
		name := fmt.Sprint(redistest.Key(t), " ", i)
		names = append(names, name)
		set, err := rsemaphore.NewExpirable(client, name).TrySetPermits(t.Context(), 1)
		require.NoError(t, err)
		require.True(t, set)
	}
	victim := holder(t, s, names)
	var all sync.WaitGroup
	took := make([]time.Time, len(names))
	for i, name := range names {
		all.Go(func() {
			if i%2 == 0 {
				_, err := rsemaphore.NewExpirable(client, name).Acquire(bounded(t), 1)
				assert.NoError(t, err)
			} else {
				waits := object("permits", "acquire", 600000, msUnit).With(peer.Command{"name": name, "thread": name})
				_, err := living.begin(waits).Wait(atMost)
				assert.NoError(t, err)
			}
			took[i] = time.Now()
		})
	}
	time.Sleep(watchdogMS * time.Millisecond / 4) // they wait
	var ends []time.Time
	if renewed {
		ends = permitEnds(t, s, names)
	}
	victim.kill(t)
	died := time.Now()
	all.Wait()
	for i, at := range took {
		assert.Less(t, at.Sub(died), withinLease, "trial %d", i)
		if renewed {
			assert.Greater(t, at.Sub(ends[i]), -leaseSlack, "trial %d: the dead one's lease is respected", i)
		}
		n, err := rsemaphore.NewExpirable(client, names[i]).Available(t.Context())
		assert.NoError(t, err)
		assert.Zero(t, n, "a permit came back twice")
	}
}

// permitEnds returns when the lease of the one permit of each semaphore ends, unless it is renewed
// once more.
func permitEnds(t *testing.T, s *redistest.Server, names []string) (all []time.Time) {
	t.Helper()
	for _, name := range names {
		permits, err := redis.StringMap(s.Do(t, "ZRANGE", codec.PermitsKey(name), 0, -1, "WITHSCORES"), nil)
		require.NoError(t, err)
		require.Len(t, permits, 1)
		for _, ms := range permits {
			end, err := strconv.ParseFloat(ms, 64)
			require.NoError(t, err)
			all = append(all, time.UnixMilli(int64(end)))
		}
	}
	return all
}
