package redistest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

// eachKind runs body on Redis and on Valkey.
func eachKind(t *testing.T, body func(t *testing.T, opts ...Option)) {
	t.Helper()
	t.Run("server", func(t *testing.T) { t.Parallel(); body(t) })
	t.Run("valkey", func(t *testing.T) { t.Parallel(); body(t, WithBinary(ValkeyBinary(t))) })
}

func TestAClusterServesAllSlotsAndSurvivesWhatIsDoneToIt(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	eachKind(t, func(t *testing.T, opts ...Option) {
		t.Helper()
		began := time.Now()
		c := StartCluster(t, 3, 1, opts...)
		t.Logf("started in %v", time.Since(began).Round(time.Millisecond))
		key := Key(t)
		first := c.Owner(t, key)
		require.Contains(t, c.Nodes()[:3], first)
		require.Len(t, c.Replicas(t, first), 1)
		require.Equal(t, "OK", c.Do(t, "SET", key, "v"))

		other := c.Owner(t, otherSlot(t, c, key))
		c.MoveSlot(t, transport.HashSlot(key), other, func() {
			require.Equal(t, []byte("v"), c.Do(t, "GET", key), "still where it was")
			_, err := first.try("GET", "{"+key+"}:none")
			word, addr := redirection(err)
			require.Equal(t, "ASK", word)
			require.Equal(t, other.Addr(), addr)
			require.Nil(t, c.Do(t, "GET", "{"+key+"}:none"))
		})
		require.Equal(t, other, c.Owner(t, key))
		require.Equal(t, []byte("v"), c.Do(t, "GET", key))

		// A replica takes over on request and after a failure.
		replica := c.Replicas(t, other)[0]
		c.Failover(t, replica)
		require.Equal(t, replica, c.AwaitOwner(t, key, other))
		require.Equal(t, []byte("v"), c.Do(t, "GET", key))
		c.await(t, "the former master is in step", func() bool { return len(replica.Replicas(t)) == 1 })
		replica.Kill()
		began = time.Now()
		require.Equal(t, other, c.AwaitOwner(t, key, replica))
		t.Logf("took over after %v", time.Since(began).Round(time.Millisecond))
		require.Equal(t, []byte("v"), c.Do(t, "GET", key))
		replica.Restart()
		require.Equal(t, []byte("v"), c.DoAt(t, key, "GET", key), "a restarted node knows the cluster")
	})
}

// otherSlot returns a key of another master.
func otherSlot(t *testing.T, c *Cluster, key string) string {
	t.Helper()
	for {
		if other := Key(t); c.Owner(t, other) != c.Owner(t, key) {
			return other
		}
	}
}

func TestAClusterWithoutShardedPubSubKnowsNoneOfIt(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, opts ...Option) {
		t.Helper()
		c := StartCluster(t, 1, 0, append(opts, WithoutShardedPubSub())...)
		s := c.Nodes()[0]
		_, err := s.try("SPUBLISH", "c", "m")
		require.ErrorContains(t, err, "ERR unknown command")
		_, err = s.try("PUBSUB", "SHARDNUMSUB", "0")
		require.Error(t, err)
		require.Equal(t, int64(0), c.Do(t, "PUBLISH", "c", "m"))
	})
}

func TestSentinelsSwitchMastersAndPublishIt(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, opts ...Option) {
		t.Helper()
		began := time.Now()
		set := StartSentinels(t, time.Second, append(opts, WithPassword("secret"))...)
		t.Logf("started in %v", time.Since(began).Round(time.Millisecond))
		first := set.Master(t)
		require.Equal(t, set.Servers()[0], first)
		require.Equal(t, "OK", set.Do(t, "SET", "k", "v"))
		n, err := redis.Int(first.Do(t, "WAIT", 2, 5000), nil)
		require.NoError(t, err)
		require.Equal(t, 2, n)

		wait := set.WatchSwitch(t)
		first.Kill()
		began = time.Now()
		reported := wait()
		t.Logf("reported after %v", reported.At.Sub(began).Round(time.Millisecond))
		require.Equal(t, first.Addr(), reported.From)
		second := set.AwaitMaster(t, first)
		require.Equal(t, reported.To, second.Addr())
		require.Equal(t, []byte("v"), set.Do(t, "GET", "k"))
	})
}

func TestWhatIsPublishedOnAMasterReachesItsReplica(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]Option{nil, {WithPassword("secret")}} {
		master := Start(t, opts...)
		require.Empty(t, master.Replicas(t))
		first, second := StartReplica(t, master, opts...), StartReplica(t, master, opts...)
		require.ElementsMatch(t, []string{first.Addr(), second.Addr()}, master.Replicas(t))

		sub := redis.PubSubConn{Conn: first.Dial(t)}
		require.NoError(t, sub.Subscribe("channel"))
		require.IsType(t, redis.Subscription{}, sub.ReceiveWithTimeout(10*time.Second))
		require.EqualValues(t, 0, master.Do(t, "PUBLISH", "channel", "hello"), "no listener on the master itself")
		require.Equal(t, redis.Message{Channel: "channel", Data: []byte("hello")}, sub.ReceiveWithTimeout(10*time.Second))

		second.Kill()
		require.Eventually(t, func() bool { return len(master.Replicas(t)) == 1 }, 10*time.Second, 5*time.Millisecond)
	}
}

// recorder is a testing.TB that records its verdict.
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

// verdictOf runs body as a separate test.
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

func TestAMissingServerFailsTheTestAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	want := "fatal: "
	if testing.Short() {
		want = "skip: "
	}
	for _, name := range []string{"no-such-server", "/no/such/server"} {
		verdict := verdictOf(func(r *recorder) { Start(r, WithBinary(name)) })
		require.True(t, strings.HasPrefix(verdict, want), verdict)
		require.Contains(t, verdict, name)
		require.Contains(t, verdict, "make setup")
	}
}

func TestTheEnvironmentNamesTheServer(t *testing.T) {
	t.Setenv(serverEnv, "no-such-server-either")
	require.Contains(t, verdictOf(func(r *recorder) { Start(r) }), "no-such-server-either")
}

func TestAServerThatWillNotStartFailsTheTestWithItsLastOutput(t *testing.T) {
	t.Parallel()
	verdict := verdictOf(func(r *recorder) { Start(r, WithArgs("--maxmemory", "much")) })
	require.Contains(t, verdict, errExited.Error())
	require.Contains(t, verdict, "maxmemory")

	taken := &Server{cfg: Shared(t).cfg, port: Shared(t).port, dir: t.TempDir()}
	require.ErrorIs(t, taken.launch(), errExited)
	require.Contains(t, strings.ToLower(taken.logTail()), "address already in use")
}

func TestAnErrorReplyFailsTheTest(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	verdict := verdictOf(func(r *recorder) { s.Do(r, "NOSUCHCOMMAND", "x") })
	require.Contains(t, verdict, "fatal: redistest: NOSUCHCOMMAND [x]: ERR unknown command")
}

func TestTheSharedServerIsOneAndCannotBeStopped(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	require.Same(t, s, Shared(t))
	for _, stop := range []func(){s.Pause, s.Resume, s.Kill, s.Restart, s.Shutdown} {
		require.Panics(t, stop)
	}
	s.Do(t, "PING")
}

func TestServersDieWithAKilledTestBinary(t *testing.T) {
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
			_ = c.Close() // still there
		}
		return err != nil
	}, soon, 10*time.Millisecond)
}
