package show

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// bigEnv is the number of other keys on the server.
const bigEnv = "REDLATCH_LIST_KEYS"

// fillServer makes a server with n other keys and a lock for every hundred of them, a
// quarter of them with queues, and hashes and queues that are long.
func fillServer(t *testing.T, n int) (s *redistest.Server, locks int) {
	t.Helper()
	s = redistest.Start(t)
	c := s.Dial(t)
	sent := 0
	send := func(command string, args ...any) {
		require.NoError(t, c.Send(command, args...))
		if sent++; sent%1000 == 0 {
			_, err := c.Do("")
			require.NoError(t, err)
		}
	}
	each := func(do string, n int) {
		for from := 0; from < n; from += 10_000 {
			send("EVAL", "for i = ARGV[1], ARGV[2] do "+do+" end", 0, from, min(from+10_000, n)-1)
		}
	}
	each("redis.call('SET', 'key:' .. i, 'value')", n)
	for i := range n / 100 {
		name := fmt.Sprintf("orders:%07d", i)
		send("HSET", name, redlatch.NewOwner(uuid.NameSpaceDNS, int64(i)).String(), 1)
		send("PEXPIRE", name, time.Hour.Milliseconds())
		if i%4 == 0 {
			send("RPUSH", codec.QueueKey(name), program.RedissonOwner, program.RedlatchOwner)
		}
	}
	// What HGETALL and LRANGE would take long for.
	each("redis.call('HSET', 'big-map', i, 1)", n/2)
	each("redis.call('RPUSH', '"+codec.QueueKey("orders:0000000")+"', i)", n/2)
	_, err := c.Do("")
	require.NoError(t, err)
	return s, n / 100
}

// It is not parallel: other tests would make the machine busier.
func TestListIsNoBurdenHoweverManyKeysThereAre(t *testing.T) {
	keys := testlevel.Rounds(20_000, 1_000_000)
	if text := os.Getenv(bigEnv); text != "" {
		var err error
		keys, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	s, locks := fillServer(t, keys)
	slow := program.WatchSlow(t, s, 10*time.Millisecond)
	began := time.Now()
	got := program.Start(t, s.URL(), "list", "--json").Outcome(5 * time.Minute)
	took := time.Since(began)
	late := slow()
	t.Logf("%d keys and %d locks took %v", keys, locks, took)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Equal(t, locks, strings.Count(got.Stdout, "\n"), "each lock once")
	require.Equal(t, locks/4, strings.Count(got.Stdout, `"kind":"fair"`))
	require.Empty(t, late)
	stats := s.CommandStats(t)
	for _, never := range []string{"keys", "hgetall", "lrange", "type"} {
		require.Zero(t, stats[never], never)
	}

	// For people, too, and in little memory: most of it is the runtime's.
	p := program.Start(t, s.URL(), "list")
	got = p.Outcome(5 * time.Minute)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Equal(t, locks+2, strings.Count(got.Stdout, "\n"), "each lock once, a heading, and how many they are")
	require.Contains(t, got.Stdout, fmt.Sprintf("\n%d locks\n", locks))
	if used, known := peak(p.Cmd.ProcessState); known {
		t.Logf("at most %d MiB", used>>20)
		require.Less(t, used, int64(300<<20))
	}
}

// What a server sends for a large hash is what it sends for a small one.
func TestListAsksForFewFieldsOfALargeHash(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "EVAL", "for i = 1, 50000 do redis.call('HSET', 'big-map', i, 1) end", 0)
	s.Do(t, "HSET", "orders", program.RedlatchOwner, 1)
	s.Do(t, "PEXPIRE", "orders", time.Hour.Milliseconds())
	before := s.BytesSent(t)
	got := program.Start(t, s.URL(), "list", "--json").Outcome(time.Minute)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Equal(t, 1, strings.Count(got.Stdout, "\n"))
	require.Less(t, s.BytesSent(t)-before, 100_000, "bytes; the whole hash is more than twice as much")
}
