package contest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func open(t *testing.T, c contest.Contestant, s *redistest.Server) contest.Locker {
	t.Helper()
	l, err := c.Open(t.Context(), contest.Settings{Addr: s.Addr()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

// each runs body in parallel for each matching contestant that runs in this process, with its own
// server.
func each(t *testing.T, fits func(contest.Contestant) bool, body func(*testing.T, contest.Contestant, *redistest.Server)) {
	t.Helper()
	t.Parallel()
	for _, c := range contest.All() {
		if c.Open == nil || !fits(c) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			body(t, c, redistest.Start(t))
		})
	}
}

func waits(c contest.Contestant) bool { return c.Waits }

// count increments a counter non-atomically under a lock, in several goroutines of several clients.
func count(t *testing.T, c contest.Contestant, lockers []contest.Locker, times int) int64 {
	t.Helper()
	const each = 2
	var counter atomic.Int64
	var all sync.WaitGroup
	for _, l := range lockers {
		for range each {
			key := l.Key("counter")
			all.Go(func() {
				for range times {
					held, err := lock(t, c, key)
					if !assert.NoError(t, err) {
						return
					}
					n := counter.Load()
					for range 20 {
						runtime.Gosched()
					}
					counter.Store(n + 1)
					assert.NoError(t, held.Unlock())
				}
			})
		}
	}
	all.Wait()
	return counter.Load()
}

// slept is how long another library's waiter must sleep to count as never woken.
const slept = 10 * time.Second

// lock acquires a lock. It retries if a waiter of another library sleeps although the lock is free,
// which happened to rueidislock once in several hundred runs.
func lock(t *testing.T, c contest.Contestant, key contest.Key) (contest.Held, error) {
	t.Helper()
	if c.Role == contest.Own {
		return key(t.Context())
	}
	for {
		ctx, cancel := context.WithCancel(t.Context())
		awake := time.AfterFunc(slept, cancel)
		held, err := key(ctx) // some hold it for as long as ctx lasts
		if err == nil && awake.Stop() {
			return held, nil
		}
		if err == nil {
			_ = held.Unlock() // acquired as the wait was canceled
		} else if ctx.Err() == nil || t.Context().Err() != nil {
			cancel()
			return nil, err
		}
		t.Logf("%s: a waiter was not woken for %v", c.Name, slept)
	}
}

func TestWaitingContestantsExclude(t *testing.T) {
	each(t, waits, func(t *testing.T, c contest.Contestant, s *redistest.Server) {
		t.Helper()
		lockers := []contest.Locker{open(t, c, s), open(t, c, s)}
		assert.Equal(t, int64(2*2*5), count(t, c, lockers, 5))
	})
}

func TestLimitRejectsHeldLock(t *testing.T) {
	each(t, func(c contest.Contestant) bool { return !c.Waits }, func(t *testing.T, c contest.Contestant, s *redistest.Server) {
		t.Helper()
		l := open(t, c, s)
		mine, other := l.Key("one"), l.Key("one")
		held, err := mine(t.Context())
		require.NoError(t, err)
		_, err = other(t.Context())
		require.Error(t, err)
		require.NoError(t, held.Unlock())
		require.Error(t, held.Unlock())
		held, err = other(t.Context())
		require.NoError(t, err)
		require.NoError(t, held.Unlock())
	})
}

func TestWaitStopsOnContextCancel(t *testing.T) {
	each(t, waits, func(t *testing.T, c contest.Contestant, s *redistest.Server) {
		t.Helper()
		holder := open(t, c, s)
		// A lease shorter than the wait must not end it.
		waiter, err := c.Open(t.Context(), contest.Settings{Addr: s.Addr(), Lease: 100 * time.Millisecond})
		require.NoError(t, err)
		defer func() { assert.NoError(t, waiter.Close()) }()
		held, err := holder.Key("held")(t.Context())
		require.NoError(t, err)
		exists, err := redis.Bool(s.Do(t, "EXISTS", holder.RedisKey("held")), nil)
		require.NoError(t, err)
		assert.True(t, exists, "RedisKey does not name the key")
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
		_, err = waiter.Key("held")(ctx)
		require.Error(t, err)
		require.Error(t, ctx.Err(), "it gave up before its context: %v", err)
		require.NoError(t, held.Unlock())
	})
}

// Sends must list all commands, and no command that scripts call, or requests are miscounted.
func TestMonitorSeparatesRequestsFromScriptCalls(t *testing.T) {
	each(t, func(contest.Contestant) bool { return true }, func(t *testing.T, c contest.Contestant, s *redistest.Server) {
		t.Helper()
		watch, err := redis.Dial("tcp", s.Addr(), redis.DialReadTimeout(10*time.Second))
		require.NoError(t, err)
		defer func() { assert.NoError(t, watch.Close()) }()
		_, err = watch.Do("MONITOR")
		require.NoError(t, err)

		lockers := []contest.Locker{open(t, c, s)}
		if c.Waits {
			lockers = append(lockers, open(t, c, s))
			count(t, c, lockers, 3)
		} else {
			held, err := lockers[0].Key("counter")(t.Context())
			require.NoError(t, err)
			require.NoError(t, held.Unlock())
		}
		last, err := redis.Dial("tcp", s.Addr())
		require.NoError(t, err)
		_, err = last.Do("ECHO", "that is all")
		require.NoError(t, err)
		require.NoError(t, last.Close())

		sent, called := observed(t, watch)
		for _, name := range sent {
			assert.Contains(t, c.Sends, name)
		}
		for _, name := range called {
			assert.NotContains(t, c.Sends, name)
		}
		assert.Contains(t, sent, "evalsha", "nothing was observed")
		assert.NotEmpty(t, called)
	})
}

// observed reads MONITOR until the ECHO, and returns the commands of clients and of scripts.
func observed(t *testing.T, watch redis.Conn) (sent, called []string) {
	t.Helper()
	for {
		line, err := redis.String(watch.Receive())
		require.NoError(t, err)
		_, rest, found := strings.Cut(line, " [")
		require.True(t, found, line)
		from, text, found := strings.Cut(rest, "] ")
		require.True(t, found, line)
		words := strings.Split(strings.ToLower(text), " ")
		name := strings.Trim(words[0], `"`)
		switch {
		case name == "echo":
			return slices.Compact(slices.Sorted(slices.Values(sent))), called
		case strings.HasSuffix(from, "lua"):
			called = append(called, name)
		case len(words) > 1 && slices.Contains([]string{"client", "cluster", "script", "pubsub"}, name):
			sent = append(sent, fmt.Sprintf("%s|%s", name, strings.Trim(words[1], `"`)))
		default:
			sent = append(sent, name)
		}
	}
}
