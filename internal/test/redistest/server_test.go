package redistest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestStartGivesAnEmptyServerOfTheTestsOwn(t *testing.T) {
	t.Parallel()
	s, other := Start(t), Start(t)
	require.Zero(t, s.Do(t, "DBSIZE"))
	require.NotEqual(t, s.Addr(), other.Addr())
	s.Do(t, "SET", "k", "v")
	require.Zero(t, other.Do(t, "DBSIZE"))
	require.Equal(t, []any{[]byte("save"), []byte("")}, s.Do(t, "CONFIG", "GET", "save"))
	require.Equal(t, []any{[]byte("appendonly"), []byte("no")}, s.Do(t, "CONFIG", "GET", "appendonly"))
	require.Contains(t, []string{"redis", "valkey"}, s.Name())
	require.Regexp(t, `^\d+\.\d+\.\d+$`, s.Version())
}

func TestServerEndsWithItsTest(t *testing.T) {
	var s *Server
	t.Run("inner", func(t *testing.T) { s = Start(t) })
	_, err := redis.Dial("tcp", s.Addr())
	require.Error(t, err)
	require.NoDirExists(t, s.dir)
}

func TestThePortOfAServerThatIsDownIsNotGivenToAnother(t *testing.T) {
	t.Parallel()
	s := Start(t)
	s.Shutdown()
	_, err := redis.Dial("tcp", s.Addr())
	require.Error(t, err)
	require.False(t, isFree(s.port))
	s.Restart()
	require.Equal(t, "PONG", s.Do(t, "PING"))
	require.False(t, isFree(s.port))
	s.Kill()
	require.False(t, isFree(s.port))
}

func TestStartTakesArgumentsPasswordAndSocket(t *testing.T) {
	t.Parallel()
	s := Start(t, WithPassword("p@ss word"), WithUnixSocket(), WithArgs("--maxmemory", "3mb"))
	require.Equal(t, []any{[]byte("maxmemory"), []byte(strconv.Itoa(3 << 20))}, s.Do(t, "CONFIG", "GET", "maxmemory"))

	_, err := dial(t, s.Addr()).Do("PING")
	require.ErrorContains(t, err, "NOAUTH")
	c, err := redis.DialURL(s.URL())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	c, err = redis.Dial("unix", s.Socket(), redis.DialPassword("p@ss word"))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Empty(t, Shared(t).Socket())
}

func TestPauseFreezesTheServerUntilResume(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := s.Dial(t)
	s.Pause()
	send(t, c, "SET", "k", "v")
	probe := dial(t, s.Addr()) // the kernel still takes connections
	_, err := redis.DoWithTimeout(probe, 50*time.Millisecond, "PING")
	require.Error(t, err)
	s.Resume()
	_, err = redis.ReceiveWithTimeout(c, soon)
	require.NoError(t, err)
	require.Equal(t, []byte("v"), s.Do(t, "GET", "k"))
}

func TestAFrozenServerCanBeKilled(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := s.Dial(t)
	s.Pause()
	s.Kill()
	s.Kill()
	_, err := redis.ReceiveWithTimeout(c, soon)
	require.Error(t, err)
}

func TestRestartGivesAnEmptyServerOnTheSamePort(t *testing.T) {
	t.Parallel()
	s := Start(t)
	addr := s.Addr()
	for _, end := range []func(){s.Kill, s.Shutdown, s.Pause, func() {}} {
		c := s.Dial(t)
		s.Do(t, "SET", "k", "v")
		end()
		s.Restart()
		require.Equal(t, addr, s.Addr())
		require.Nil(t, s.Do(t, "GET", "k"))
		_, err := c.Do("PING")
		require.Error(t, err)
	}
}

func TestDoIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s, key := Shared(t), Key(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 50 {
				s.Do(t, "INCR", key)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []byte("1000"), s.Do(t, "GET", key))
}

func TestCommandStatsCountsCallsByCommand(t *testing.T) {
	t.Parallel()
	s := Start(t)
	s.Do(t, "CONFIG", "RESETSTAT")
	for range 3 {
		s.Do(t, "EVAL", "return redis.call('incr', KEYS[1])", 1, "k")
	}
	stats := s.CommandStats(t)
	require.EqualValues(t, 3, stats["eval"])
	require.EqualValues(t, 3, stats["incr"])
	require.Zero(t, stats["get"])
}

func TestClientsAndChannelsCountOnlyTheTestsOwn(t *testing.T) {
	t.Parallel()
	s := Start(t)
	require.Zero(t, s.Clients(t))
	require.Empty(t, s.Channels(t))
	normal, sub := s.Dial(t), s.Dial(t)
	send(t, sub, "SUBSCRIBE", "ch")
	_, err := sub.Receive()
	require.NoError(t, err)
	require.Equal(t, 2, s.Clients(t))
	require.Equal(t, []string{"ch"}, s.Channels(t))

	require.Equal(t, 1, s.KillClients(t, "pubsub"))
	_, err = redis.ReceiveWithTimeout(sub, soon)
	require.ErrorIs(t, err, io.EOF)
	_, err = normal.Do("PING")
	require.NoError(t, err)

	require.Equal(t, 1, s.KillClients(t, "normal"))
	_, err = redis.ReceiveWithTimeout(normal, soon)
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, s.Clients(t))
}

func TestKeyIsUniqueAndPlain(t *testing.T) {
	t.Parallel()
	t.Run("with {odd} bytes: äöü "+strings.Repeat("long", 50), func(t *testing.T) {
		t.Parallel()
		seen := map[string]bool{}
		for range 1000 {
			key := Key(t)
			require.Regexp(t, `^TestKeyIsUniqueAndPlain-with_-odd-[\w-]+-\d+-[0-9a-f]{8}$`, key)
			require.Less(t, len(key), 100)
			require.False(t, seen[key])
			seen[key] = true
		}
	})
}

func TestEachServerRunsTheBodyOnRealAndInMemoryServers(t *testing.T) {
	var names []string
	EachServer(t, func(t *testing.T, target Target) {
		t.Helper()
		names = append(names, t.Name())
		target.Do(t, "SET", "k", "v")
		got, err := redis.String(target.Dial(t).Do("GET", "k"))
		require.NoError(t, err)
		require.Equal(t, "v", got)
		c, err := redis.DialURL(target.URL())
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.Equal(t, "redis://"+target.Addr(), target.URL())
	})
	want := []string{t.Name() + "/server"}
	if testlevel.IsAll() {
		want = append(want, t.Name()+"/miniredis")
		if _, err := FindValkey(); err == nil {
			want = append(want, t.Name()+"/valkey")
		}
	}
	require.Equal(t, want, names)
}

func TestParseInfoDistinguishesForksFromRedis(t *testing.T) {
	t.Parallel()
	cases := map[string]serverInfo{
		"# Server\r\nredis_version:7.0.15\r\nprocess_id:12\r\n":                                             {"redis", "7.0.15", 12},
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nprocess_id:3\r\n":             {"valkey", "8.1.1", 3},
		"redis_version:7.2.4\r\nserver_name:unknown\r\nprocess_id:4\r\nexecutable:/a:b\r\nconfig_file:\r\n": {"unknown", "7.2.4", 4},
	}
	for text, want := range cases {
		got, err := parseInfo(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := parseInfo("redis_version:7.0.15\r\n")
	require.Error(t, err)
}

func TestAMissingValkeySkipsTheTestAndFailsItWhereItMustBeThere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(valkeyEnv, "")
	t.Chdir(t.TempDir())
	fatal := "fatal: "
	if testing.Short() {
		fatal = "skip: "
	}
	for _, c := range []struct{ ci, name, want string }{
		{"", "", "skip: NOT RUN ON VALKEY"},
		{"true", "", fatal},
		{"", "no-such-valkey", fatal},
		{"true", "/no/such/valkey", fatal},
	} {
		t.Setenv("CI", c.ci)
		t.Setenv(valkeyEnv, c.name)
		verdict := verdictOf(func(r *recorder) { StartValkey(r) })
		require.True(t, strings.HasPrefix(verdict, c.want), verdict)
		require.Contains(t, verdict, "make setup")
	}
}

// tidy is a recorder that runs its cleanups with its test.
type tidy struct {
	*recorder
	t *testing.T
}

func (c tidy) Cleanup(f func()) { c.t.Cleanup(f) }
func (tidy) Failed() bool       { return false }

func TestAServerThatIsNoValkeyFailsTheTest(t *testing.T) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("the tests' server is not called redis-server here")
	}
	t.Setenv(valkeyEnv, path)
	require.Contains(t, verdictOf(func(r *recorder) { StartValkey(tidy{r, t}) }), "is no Valkey but redis")
}

// The program must be started by the name of its link.
func TestTheFetchedValkeyIsFoundFromAnyFolderBelow(t *testing.T) {
	t.Setenv(valkeyEnv, "")
	folder := t.TempDir()
	kept := filepath.Join(folder, valkeyKept)
	require.NoError(t, os.MkdirAll(filepath.Dir(kept), 0o700))
	require.NoError(t, os.WriteFile(kept+"-really", []byte("#!"), 0o700))
	require.NoError(t, os.Symlink(kept+"-really", kept))
	below := filepath.Join(folder, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o700))
	t.Chdir(below)
	path, err := FindValkey()
	require.NoError(t, err)
	require.Equal(t, "valkey-server", filepath.Base(path))
	want, err := os.Stat(kept)
	require.NoError(t, err)
	got, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(want, got))
}

func TestExpiriesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	s := Start(t, WithAppendOnly())
	for _, cmd := range [][]any{
		{"SET", "set", "v", "PX", 5000},
		{"SET", "not there", "PXAT of nobody", "NX", "EX", 7},
		{"EVAL", "redis.call('hincrby', KEYS[1], 'o', 1) return redis.call('pexpire', KEYS[1], 3000)", 1, "script"},
		{"EVAL", "return redis.call('pexpire', KEYS[1], 9000)", 1, "script"},
		{"SET", "no expiry", "PXAT"},
	} {
		s.Do(t, cmd[0].(string), cmd[1:]...)
	}
	want := map[string]time.Time{}
	for _, key := range []string{"set", "not there", "script"} {
		ms, err := redis.Int64(s.Do(t, "PEXPIRETIME", key), nil)
		require.NoError(t, err)
		want[key] = time.UnixMilli(ms)
	}
	require.Equal(t, want, s.Expiries(t))

	s.Do(t, "DEL", "set")
	s.Pause()
	require.Equal(t, want, s.Expiries(t), "of a frozen server, and of a key that is gone")
	s.Kill()
	require.Equal(t, want, s.Expiries(t), "of a dead server")
	s.Restart()
	ms, err := redis.Int64(s.Do(t, "PEXPIRETIME", "script"), nil)
	require.NoError(t, err)
	require.Equal(t, want["script"].UnixMilli(), ms, "the data outlives the process")
}

func TestExpiriesOfAFileThatIsCutOffOrWrong(t *testing.T) {
	t.Parallel()
	const whole = "*3\r\n$9\r\nPEXPIREAT\r\n$1\r\nk\r\n$4\r\n1234\r\n"
	for n := range len(whole) {
		got := map[string]time.Time{}
		require.NoError(t, readExpiries(strings.NewReader(whole+"*1\r\n$5\r\nMULTI\r\n"+whole[:n]), got), n)
		require.Equal(t, map[string]time.Time{"k": time.UnixMilli(1234)}, got, n)
	}
	for _, text := range []string{"nonsense\r\n", "*x\r\n", "*0\r\n", "*1\r\n*1\r\n", "*3\r\n$9\r\nPEXPIREAT\r\n$1\r\nk\r\n$1\r\nx\r\n"} {
		require.Error(t, readExpiries(strings.NewReader(text), map[string]time.Time{}), text)
	}
}

// orphanEnv makes the test binary start a server and wait to be killed.
const orphanEnv = "REDISTEST_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		orphan()
	}
	Main(m)
}

func orphan() {
	cfg := newConfig(nil)
	if err := cfg.findBinary(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s, err := start(cfg)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("addr", s.Addr())
	select {}
}
