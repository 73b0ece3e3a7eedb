package rfairlock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
)

// The environment of a test binary that is to be one of several processes that
// take turns.
const (
	turnerURL        = "RFAIRLOCK_TEST_TURNER_URL"
	turnerLock       = "RFAIRLOCK_TEST_TURNER_LOCK"
	turnerGoroutines = "RFAIRLOCK_TEST_TURNER_GOROUTINES"
	turnerRounds     = "RFAIRLOCK_TEST_TURNER_ROUNDS"
)

func init() {
	roles[turnerURL] = func(url string) {
		fmt.Println("done", turner(url))
		os.Exit(0)
	}
}

// turner takes its turns when its parent says so.
func turner(url string) error {
	goroutines, err := strconv.Atoi(os.Getenv(turnerGoroutines))
	if err != nil {
		return err
	}
	rounds, err := strconv.Atoi(os.Getenv(turnerRounds))
	if err != nil {
		return err
	}
	client, err := redlatch.Open(context.Background(), url, noPoll())
	if err != nil {
		return err
	}
	fmt.Println("ready")
	parent := bufio.NewReader(os.Stdin)
	if _, err := parent.ReadString('\n'); err != nil {
		return err
	}
	go func() { // the parent's death, however it dies, ends the pipe and us
		_, _ = io.Copy(io.Discard, parent)
		os.Exit(1)
	}()
	if err := takeTurns(context.Background(), rfairlock.New(client, os.Getenv(turnerLock)), goroutines, rounds); err != nil {
		return err
	}
	return client.Close()
}

// process is another run of the test binary.
type process struct {
	cmd  *exec.Cmd
	say  func(line string) error
	said *bufio.Reader
}

// start runs the test binary in a role, which it is told by its environment.
func start(t *testing.T, env ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be done
		_ = cmd.Wait()
	})
	return &process{
		cmd:  cmd,
		say:  func(line string) error { _, err := fmt.Fprintln(in, line); return err },
		said: bufio.NewReader(out),
	}
}

// hears holds that the process says want next.
func (p *process) hears(t *testing.T, want string) {
	t.Helper()
	line, err := p.said.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, want, strings.TrimSpace(line))
}

func TestProcessesAcquireInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	const processes, goroutines = 5, 10
	rounds := testlevel.Rounds(4, 10)
	srv := redistest.Start(t)
	name := redistest.Key(t)
	u := watch(t, srv, name)
	var all []*process
	for range processes {
		all = append(all, start(t, turnerURL+"="+srv.URL(), turnerLock+"="+name,
			turnerGoroutines+"="+strconv.Itoa(goroutines), turnerRounds+"="+strconv.Itoa(rounds)))
	}
	for _, p := range all {
		p.hears(t, "ready")
	}
	began := time.Now()
	for _, p := range all {
		require.NoError(t, p.say("go"))
	}
	for _, p := range all {
		p.hears(t, "done <nil>")
	}
	t.Logf("%.0f hand-overs per second", float64(processes*goroutines*rounds)/time.Since(began).Seconds())
	inverted, queued := u.inversions(t, srv)
	require.Zero(t, inverted)
	require.Len(t, u.granted, processes*goroutines*rounds)
	require.Greater(t, queued, processes*goroutines*rounds/2)
	requireNoTrace(t, srv, name)
}
