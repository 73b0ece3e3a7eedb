package repair

import (
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rfairlock"
)

// longQueue queues owners, and subscribes for the live owners. Some deadlines have passed, and some
// owners do not have a deadline. It returns the dead owners.
func longQueue(t *testing.T, s redistest.Target, name string, length int, now time.Time, lives func(i int) bool) (dead []string) {
	t.Helper()
	c := redis.PubSubConn{Conn: s.Dial(t)}
	for i := range length {
		owner := fmt.Sprint("owner-", i)
		s.Do(t, "RPUSH", codec.QueueKey(name), owner)
		if i%37 != 5 {
			s.Do(t, "ZADD", codec.TimeoutKey(name), now.Add(time.Duration(i*i-100)*time.Second).UnixMilli(), owner)
		}
		if !lives(i) {
			dead = append(dead, owner)
			continue
		}
		require.NoError(t, c.Subscribe(protocol.OwnerChannel(name, owner)))
		require.IsType(t, redis.Subscription{}, c.Receive())
	}
	return dead
}

func stateOf(t *testing.T, s redistest.Target, name string) (queue []string, deadlines map[string]int64) {
	t.Helper()
	queue, err := redis.Strings(s.Do(t, "LRANGE", codec.QueueKey(name), 0, -1), nil)
	require.NoError(t, err)
	deadlines, err = redis.Int64Map(s.Do(t, "ZRANGE", codec.TimeoutKey(name), 0, -1, "WITHSCORES"), nil)
	require.NoError(t, err)
	return queue, deadlines
}

func TestEvictAllEvictsSequentially(t *testing.T) {
	t.Parallel()
	const length = 120
	for what, lives := range map[string]func(i int) bool{
		"none lives":                  func(int) bool { return false },
		"all live":                    func(int) bool { return true },
		"one in three":                func(i int) bool { return i%3 == 1 },
		"the first":                   func(i int) bool { return i == 0 },
		"the last":                    func(i int) bool { return i == length-1 },
		"the second half":             func(i int) bool { return i >= length/2 },
		"next to the ends of a batch": func(i int) bool { return i%50 == 0 || i%50 == 49 },
	} {
		for _, held := range testlevel.Part([]bool{false, true}, 2, what) {
			t.Run(fmt.Sprint(what, ", held ", held), func(t *testing.T) {
				t.Parallel()
				evictBothWays(t, redistest.Shared(t), length, held, lives)
			})
		}
	}
}

func evictBothWays(t *testing.T, s redistest.Target, length int, held bool, lives func(i int) bool) {
	t.Helper()
	one, all := redistest.Key(t)+"-one", redistest.Key(t)+"-all"
	client, now := targetOf(t, s).Client, time.Now()
	dead := longQueue(t, s, one, length, now, lives)
	longQueue(t, s, all, length, now, lives)
	if held {
		s.Do(t, "HSET", one, "holder", 1)
		s.Do(t, "HSET", all, "holder", 1)
	}
	woken := ""
	want := make([]admin.Waiter, len(dead))
	for i := len(dead) - 1; i >= 0; i-- {
		e, err := admin.Evict(t.Context(), rfairlock.New(client, one), dead[i])
		require.NoError(t, err)
		want[i] = e.Waiter
		if e.Woken {
			woken = e.Next
		}
	}
	asked, _ := stateOf(t, s, all)
	got, gotWoken, err := EvictAll(t.Context(), client, inspect.Part{Name: all, First: 1, Last: length}, asked)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, woken, gotWoken)
	wantQueue, wantDeadlines := stateOf(t, s, one)
	queue, deadlines := stateOf(t, s, all)
	require.Equal(t, wantQueue, queue)
	require.Len(t, deadlines, len(wantDeadlines))
	took := time.Now().UnixMilli() - now.UnixMilli() // an eviction leaves later waiters the remaining time
	for owner, deadline := range wantDeadlines {
		require.InDelta(t, deadline, deadlines[owner], float64(took), owner)
	}
}
