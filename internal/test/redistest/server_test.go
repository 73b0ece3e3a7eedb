package redistest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestStoppedServerKeepsItsPort(t *testing.T) {
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

func TestPauseFreezesServerUntilResume(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := s.Dial(t)
	s.Pause()
	send(t, c, "SET", "k", "v")
	probe := dial(t, s.Addr()) // the kernel still accepts connections
	_, err := redis.DoWithTimeout(probe, 50*time.Millisecond, "PING")
	require.Error(t, err)
	s.Resume()
	_, err = redis.ReceiveWithTimeout(c, soon)
	require.NoError(t, err)
	require.Equal(t, []byte("v"), s.Do(t, "GET", "k"))
}

func TestRestartEmptiesServerOnSamePort(t *testing.T) {
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

func TestClientsAndChannelsCountOnlyOwn(t *testing.T) {
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

func TestMissingValkeySkipsUnlessRequired(t *testing.T) {
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

func TestExpiriesMatchServer(t *testing.T) {
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

func TestExpiriesRejectsInvalidFile(t *testing.T) {
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

// recorder is a testing.TB that records the result of a test.
type recorder struct {
	testing.TB
	verdict string
}

func (*recorder) Helper()        {}
func (*recorder) Cleanup(func()) {}

func (r *recorder) Fatal(args ...any) { r.end("fatal: " + fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.end("fatal: " + fmt.Sprintf(format, args...))
}

func (r *recorder) Skipf(format string, args ...any) {
	r.end("skip: " + fmt.Sprintf(format, args...))
}

func (r *recorder) end(verdict string) {
	r.verdict = verdict
	runtime.Goexit()
}

// verdictOf runs body as a separate test, and returns its result.
func verdictOf(body func(r *recorder)) string {
	r := &recorder{verdict: "passed"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(r)
	}()
	<-done
	return r.verdict
}

func TestUnstartedServerFailsTest(t *testing.T) {
	t.Parallel()
	missing := "fatal: "
	if testing.Short() {
		missing = "skip: "
	}
	for name, c := range map[string]struct {
		start func(r *recorder)
		wants []string
	}{
		"missing":   {func(r *recorder) { Start(r, WithBinary("no-such-server")) }, []string{missing, "no-such-server", "make setup"}},
		"no path":   {func(r *recorder) { Start(r, WithBinary("/no/such/server")) }, []string{missing, "/no/such/server", "make setup"}},
		"arguments": {func(r *recorder) { Start(r, WithArgs("--maxmemory", "much")) }, []string{"fatal: ", errExited.Error(), "maxmemory"}},
		"error": {func(r *recorder) { Shared(t).Do(r, "NOSUCHCOMMAND", "x") },
			[]string{"fatal: redistest: NOSUCHCOMMAND [x]: ERR unknown command"}},
	} {
		verdict := verdictOf(c.start)
		for _, want := range c.wants {
			require.Contains(t, verdict, want, name)
		}
	}
	taken := &Server{cfg: Shared(t).cfg, port: Shared(t).port, dir: t.TempDir()}
	require.ErrorIs(t, taken.launch(), errExited)
	require.Contains(t, strings.ToLower(taken.logTail()), "address already in use")
}

func TestClusterWithoutShardedPubSubRejectsIt(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 1, 0, WithoutShardedPubSub())
	_, err := c.Nodes()[0].try("SPUBLISH", "c", "m")
	require.ErrorContains(t, err, "ERR unknown command")
	_, err = c.Nodes()[0].try("PUBSUB", "SHARDNUMSUB", "0")
	require.Error(t, err)
	require.Equal(t, int64(0), c.Do(t, "PUBLISH", "c", "m"))
}

func TestSharedServerIsSingleAndUnstoppable(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	require.Same(t, s, Shared(t))
	for _, stop := range []func(){s.Pause, s.Resume, s.Kill, s.Restart, s.Shutdown} {
		require.Panics(t, stop)
	}
	s.Do(t, "PING")
}

func TestServersExitWithKilledTestBinary(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a process to its parent")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanEnv+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	addr := ""
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		_, addr, _ = strings.Cut(lines.Text(), "addr ")
	}
	require.NotEmpty(t, addr)
	_, err = dial(t, addr).Do("PING")
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool {
		c, err := redis.Dial("tcp", addr)
		if err == nil {
			_ = c.Close() // the server is still listening
		}
		return err != nil
	}, soon, 10*time.Millisecond)
}

// If the environment variable orphanEnv is set, the test binary starts a server and waits until it is killed.
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

func TestStageCleansUpInReverseAndReportsFailures(t *testing.T) {
	t.Parallel()
	var order []int
	err := Perform(func(tb testing.TB) {
		tb.Helper()
		tb.Cleanup(func() { order = append(order, 1) })
		tb.Cleanup(func() {
			order = append(order, 2)
			tb.Cleanup(func() { order = append(order, 3) })
		})
		tb.Fatalf("no luck: %d", 13)
		order = append(order, 0)
	})
	require.EqualError(t, err, "no luck: 13")
	require.Equal(t, []int{2, 1, 3}, order)
	require.NoError(t, Perform(func(testing.TB) {}))
}
