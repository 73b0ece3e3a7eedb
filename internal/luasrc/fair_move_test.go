package luasrc

import (
	"fmt"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// A user without the right to the fast commands gets the same result by slow ones.
func TestDeadlinesOfManyMoveAtOnce(t *testing.T) {
	t.Parallel()
	for _, script := range []struct {
		name   string
		text   string
		queued int
		users  map[string]string // what they may not do, and the command that counts
	}{
		{"try", FairTry.Text(), 100, map[string]string{"": "zunionstore", "-sadd": "zincrby", "-zunionstore": "zincrby"}},
		{"acquire", FairAcquire.Text(), 100, map[string]string{"": "zunionstore", "-sadd": "zincrby", "-zunionstore": "zincrby"}},
		{"try, a few", FairTry.Text(), 4, map[string]string{"": "zincrby"}},
		{"acquire, a few", FairAcquire.Text(), 4, map[string]string{"": "zincrby"}},
	} {
		for lacks, counts := range script.users {
			t.Run(fmt.Sprintf("%s, %s", script.name, lacks), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				words := []any{"SETUSER", "caller", "on", "nopass", "~*", "&*", "+@all"}
				if lacks != "" {
					words = append(words, lacks)
				}
				server.Do(t, "ACL", words...)
				conn := server.Dial(t)
				_, err := conn.Do("AUTH", "caller", "any")
				require.NoError(t, err)

				queue, timeouts := codec.QueueKey("l"), codec.TimeoutKey("l")
				for i := range script.queued + 1 {
					server.Do(t, "RPUSH", queue, fmt.Sprint("w", i))
					server.Do(t, "ZADD", timeouts, t0+10*int64(i), fmt.Sprint("w", i))
				}
				if lacks == "" {
					server.Do(t, "PEXPIRE", timeouts, 1_000_000)
				}
				server.Do(t, "CONFIG", "RESETSTAT")
				reply, err := conn.Do("EVAL", script.text, 3, "l", queue, timeouts, t0-1, "w0", 300_000, 30_000)
				require.NoError(t, err)
				require.Nil(t, reply)
				stats := server.CommandStats(t)
				want := int64(1)
				if counts == "zincrby" {
					want = int64(script.queued)
				}
				require.Equal(t, want, stats[counts])

				left, ok := server.Do(t, "PTTL", timeouts).(int64)
				require.True(t, ok)
				if lacks == "" {
					require.InDelta(t, 970_000, left, 30_000, "only the client that let it expire resolves it")
				} else {
					require.Equal(t, int64(-1), left)
				}
				require.Equal(t, "hash", server.Do(t, "TYPE", "l"))
				held, err := redis.StringMap(server.Do(t, "HGETALL", "l"), nil)
				require.NoError(t, err)
				require.Equal(t, map[string]string{"w0": "1"}, held)
				scores, err := redis.IntMap(server.Do(t, "ZRANGE", timeouts, 0, -1, "WITHSCORES"), nil)
				require.NoError(t, err)
				require.Len(t, scores, script.queued)
				for i := 1; i <= script.queued; i++ {
					require.Equal(t, t0+10*int64(i)-300_000, int64(scores[fmt.Sprint("w", i)]))
				}
			})
		}
	}
}
