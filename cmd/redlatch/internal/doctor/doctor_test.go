package doctor

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/conn"
	"github.com/redlatch/redlatch/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// examined examines a server and returns the findings by their checks.
func examined(t *testing.T, url, prefix string) map[string]Finding {
	t.Helper()
	srv, err := conn.New(conn.Settings{Address: url})
	require.NoError(t, err)
	findings, err := Examine(t.Context(), srv, prefix)
	require.NoError(t, err)
	all := map[string]Finding{}
	for _, f := range findings {
		all[f.Check] = f
	}
	require.Len(t, all, len(checks))
	return all
}

// The rights of a user that lacks nothing, below app:, in the words of ACL SETUSER.
const (
	plainCommands = "+eval +evalsha +ping +del +exists +pexpire +pttl +hget +hset +hexists +hincrby +hkeys +hgetall " +
		"+publish +subscribe +unsubscribe"
	fairCommands = "+lindex +lpop +rpush +lrange +lrem +zscore +zadd +zrem +zrange +zincrby +time"
	moreCommands = "+get +set +client|id +client|kill +client|setname +pubsub|numsub +role"
	whatNames    = "~app:* ~redisson_lock__channel:{app:* &redisson_lock__channel:{app:* " +
		"~redisson_lock_queue:{app:* ~redisson_lock_timeout:{app:* ~redisson_unlock_latch:{app:*"
)

// checkOf returns the check that should find that a right is missing, and how bad
// that is.
func checkOf(right string) (string, Level) {
	switch {
	case strings.Contains(fairCommands, right), strings.Contains(right, "_queue"), strings.Contains(right, "_timeout"):
		return "fair rights", Warning
	case strings.Contains(moreCommands, right), strings.Contains(right, "_latch"):
		return "more rights", OK
	}
	return "rights", Error
}

func TestDoctorNamesEachRightThatIsMissingAndTheLineThatGrantsIt(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, ...redistest.Option) *redistest.Server{
		"redis": redistest.Start, "valkey": redistest.StartValkey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			all := strings.Fields(plainCommands + " " + fairCommands + " " + moreCommands + " " + whatNames)
			for i, right := range all {
				user := fmt.Sprint("user", i)
				s.Do(t, "ACL", "SETUSER", user, "reset", "on", ">password")
				for _, other := range all {
					if other != right {
						s.Do(t, "ACL", "SETUSER", user, other)
					}
				}
				url := "redis://" + user + ":password@" + s.Addr()
				check, level := checkOf(right)
				f := examined(t, url, "app:")[check]
				require.Equal(t, "ACL SETUSER "+user+" "+right, f.Command, "%s: %s", right, f.Found)
				require.Equal(t, level, f.Level)

				var words []any
				for _, word := range strings.Fields(f.Command)[1:] {
					words = append(words, word)
				}
				s.Do(t, "ACL", words...)
				healed := examined(t, url, "app:")
				for _, check := range []string{"rights", "fair rights", "more rights", "lock", "fair lock", "pub/sub", "counting"} {
					require.Equal(t, OK, healed[check].Level, "%s: %s", right, healed[check].Found)
					require.Empty(t, healed[check].Command)
				}
			}
			require.EqualValues(t, 0, s.Do(t, "DBSIZE"), "something is left on the server")
		})
	}
}

func TestOneLineGivesAUserWithoutRightsAllThatLocksNeed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "nobody", "reset", "on", ">password")
	url := "redis://nobody:password@" + s.Addr()
	found := examined(t, url, "app:")
	for _, check := range []string{"rights", "fair rights", "more rights"} {
		var words []any
		for _, word := range strings.Fields(found[check].Command)[1:] {
			words = append(words, word)
		}
		s.Do(t, "ACL", words...)
	}
	for _, check := range []string{"rights", "fair rights", "more rights", "lock", "fair lock", "pub/sub", "counting"} {
		f := examined(t, url, "app:")[check]
		require.Equal(t, OK, f.Level, f.Found)
		require.Empty(t, f.Command, f.Found)
	}
}

func TestPatternsTakePrefixesAsTheyAre(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"":         "redisson_unlock_latch:{*",
		"app:":     "redisson_unlock_latch:{app:*",
		"{app}:":   "redisson_unlock_latch:{app}:*",
		`a*b?c[d]`: `redisson_unlock_latch:{a\*b\?c\[d\]*`,
	} {
		e := &exam{prefix: prefix}
		require.Equal(t, want, e.pattern(latchKey))
	}
}

func TestDoctorLooksAtTheSettings(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, c := range []struct {
		settings []string // pairs
		check    string
		level    Level
		says     string
	}{
		{[]string{"maxmemory", "100mb", "maxmemory-policy", "allkeys-lru"}, "eviction", Warning, "allkeys-lru with maxmemory 100 MB may evict a lock"},
		{[]string{"maxmemory", "100mb", "maxmemory-policy", "noeviction"}, "eviction", OK, "noeviction, "},
		{[]string{"maxmemory", "1mb"}, "eviction", Warning, "memory are used"},
		{[]string{"maxmemory", "0", "maxmemory-policy", "volatile-ttl"}, "eviction", OK, "volatile-ttl, and no maxmemory"},
		{[]string{"appendonly", "no"}, "persistence", Warning, "a crash forgets locks"},
		{[]string{"appendonly", "yes", "appendfsync", "always"}, "persistence", OK, "appendfsync always"},
		{[]string{"tcp-keepalive", "0"}, "keepalive", Warning, "look alive for ever"},
		{[]string{"tcp-keepalive", "600"}, "keepalive", Warning, "for 600 s"},
		{[]string{"tcp-keepalive", "60"}, "keepalive", OK, "after 60 s"},
	} {
		for i := 0; i < len(c.settings); i += 2 {
			s.Do(t, "CONFIG", "SET", c.settings[i], c.settings[i+1])
		}
		f := examined(t, s.URL(), "")[c.check]
		require.Equal(t, c.level, f.Level, "%s: %s", c.says, f.Found)
		require.Contains(t, f.Found, c.says)
		require.Equal(t, c.level != OK, f.Advice != "", f.Advice)
	}
}

func TestDoctorLooksAtReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	all := examined(t, master.URL(), "")
	require.Equal(t, Warning, all["replicas"].Level, all["replicas"].Found)
	require.Contains(t, all["replicas"].Advice, "min-replicas-to-write 1")
	require.Equal(t, OK, all["counting"].Level, all["counting"].Found)
	master.Do(t, "CONFIG", "SET", "min-replicas-to-write", 1)
	require.Equal(t, "1, in step, min-replicas-to-write 1", examined(t, master.URL(), "")["replicas"].Found)

	all = examined(t, replica.URL(), "")
	require.Contains(t, all["server"].Found, "a replica, where no lock can be taken")
	require.Equal(t, Error, all["server"].Level)
	require.Equal(t, Error, all["lock"].Level)
}

func TestDoctorTellsWhatRedissonChoosesInACluster(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes", "--cluster-config-file", filepath.Join(t.TempDir(), "nodes.conf")))
	all := examined(t, s.URL(), "")
	require.Equal(t, Error, all["server"].Level)
	require.Contains(t, all["server"].Found, "part of a cluster")
	require.Contains(t, all["sharded"].Found, "Redisson's AUTO uses SPUBLISH")
}

func TestDoctorSeesThatTheClocksAreApart(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	s.SetTime(time.Now().Add(-time.Minute))
	f := examined(t, s.URL(), "")["clock"]
	require.Equal(t, Warning, f.Level, f.Found)
	require.Regexp(t, `1m0|59\.\d+s behind`, f.Found)
}

func TestWorstIsTheWorst(t *testing.T) {
	t.Parallel()
	require.Equal(t, OK, Worst(nil))
	require.Equal(t, Warning, Worst([]Finding{{Level: Unknown}, {Level: Warning}, {Level: OK}}))
	for level, word := range map[Level]string{OK: "ok", Unknown: "unknown", Warning: "warning", Error: "error"} {
		text, err := level.MarshalText()
		require.NoError(t, err)
		require.Equal(t, word, string(text))
	}
}
