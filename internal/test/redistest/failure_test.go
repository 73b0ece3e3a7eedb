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
	"go.uber.org/goleak"
)

// recorder is a test that notes how it ends.
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

// verdictOf runs body as a test of its own would run.
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

	s := Shared(t)
	verdict = verdictOf(func(r *recorder) { Start(r, WithPort(s.port)) })
	require.Contains(t, verdict, errExited.Error())
	require.Contains(t, strings.ToLower(verdict), "address already in use")
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

func TestIgnoreServersLetsLiveServersPassALeakCheck(t *testing.T) {
	// Not parallel: it looks at all goroutines, but for those of other tests,
	// which wait.
	s := Start(t)
	require.NoError(t, goleak.Find(IgnoreServers()))
	require.ErrorContains(t, goleak.Find(), "(*process).run")
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
