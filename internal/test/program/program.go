// Package program runs redlatch as a program, for the tests of its commands.
//
//	TestMain ─▶ Main ─▶ the tests ─▶ Start, Finish ─▶ the test binary once more, with Env
//	                                                        │
//	              Process.Line, Rest, Outcome, Golden ◀─────┘ Main: cli.Execute, which TestMain gives it
//
// The test binary is the program: so nothing need be built, and the race detector
// watches both. TestMain chooses the commands.
//
// Here are also the locks, owners and scripts that tests of several commands use.
package program

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Env makes the test binary be the program under test: it starts itself,
// as the program does for its hidden commands, and the race detector watches
// all of those processes.
const Env = "REDLATCH_TEST_AS_PROGRAM"

// Main runs the tests of a package, or is the program, with the commands that they
// need, if Env is set: it calls execute, which is cli.Execute. TestMain calls Main.
func Main[C any](m *testing.M, execute func(context.Context, []string, ...C) int, commands ...C) {
	if os.Getenv(Env) != "" {
		os.Exit(execute(context.Background(), os.Args[1:], commands...))
	}
	heedSignals()
	redistest.Main(m)
}

// heedSignals ends that this process ignores signals, as it does when a shell runs it in the
// background (SIGINT) or with nohup (SIGHUP). Processes that it starts would ignore them, too,
// and their tests find that signals do not arrive.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// Soon bounds waits for what should happen at once, on a slow machine.
const Soon = 10 * time.Second

// PollEvery is how often tests poll where no event exists.
const PollEvery = 5 * time.Millisecond

// Process is one run of redlatch.
type Process struct {
	// Cmd is the process.
	Cmd *exec.Cmd
	// Stdin is its standard input.
	Stdin io.WriteCloser
	// Stderr is what it has written to standard error, when it has ended.
	Stderr bytes.Buffer

	t      *testing.T
	stdout *bufio.Reader
	pipe   *os.File // below stdout
}

// Start starts redlatch against the server at url. It is killed with the test,
// if it is still there.
func Start(t *testing.T, url string, args ...string) *Process {
	t.Helper()
	return StartWith(t, []string{"REDIS_URL=" + url}, args...)
}

// StartWith is Start with other variables in the environment.
func StartWith(t *testing.T, env []string, args ...string) *Process {
	t.Helper()
	p, err := StartIn(t, nil, env, args...)
	require.NoError(t, err)
	return p
}

// StartIn is StartWith with attributes of the system. The error is that of starting.
func StartIn(t *testing.T, attr *syscall.SysProcAttr, env []string, args ...string) (*Process, error) {
	t.Helper()
	p := &Process{t: t, Cmd: command(context.WithoutCancel(t.Context()), t, env, args...)}
	p.Cmd.SysProcAttr = attr
	p.Cmd.Stderr = &p.Stderr
	var err error
	p.Stdin, err = p.Cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.Cmd.StdoutPipe()
	require.NoError(t, err)
	var ok bool
	p.pipe, ok = out.(*os.File)
	require.True(t, ok)
	p.stdout = bufio.NewReader(out)
	p.Cmd.WaitDelay = time.Second // for processes that keep standard error open
	if err := p.Cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill()
		_ = p.Cmd.Wait()
	})
	return p, nil
}

// command returns the program, to be started. It is killed when ctx ends.
func command(ctx context.Context, t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Dir = t.TempDir() // some arguments name files
	cmd.Env = append(append(os.Environ(), Env+"=1", "GORACE=atexit_sleep_ms=0"), env...)
	return cmd
}

// Line reads one line of standard output.
func (p *Process) Line() string {
	p.t.Helper()
	require.NoError(p.t, p.pipe.SetReadDeadline(time.Now().Add(Soon)))
	text, err := p.stdout.ReadString('\n')
	require.NoError(p.t, err, "no line of output")
	return strings.TrimSuffix(text, "\n")
}

// Rest reads standard output until no process has it open any more: redlatch, the command
// and all of its children have ended.
func (p *Process) Rest() string {
	p.t.Helper()
	return p.RestWithin(2 * Soon)
}

// RestWithin is Rest with a limit of its own.
func (p *Process) RestWithin(limit time.Duration) string {
	p.t.Helper()
	require.NoError(p.t, p.pipe.SetReadDeadline(time.Now().Add(limit)))
	text, err := io.ReadAll(p.stdout)
	require.NoError(p.t, err, "a process keeps standard output open")
	return string(text)
}

// Code waits for the program's end and returns its exit code.
func (p *Process) Code() int {
	p.t.Helper()
	err := p.Cmd.Wait()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(p.t, err, &exit)
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Outcome is what a program that has ended leaves.
type Outcome struct {
	// Code is the exit code, -1 after a signal.
	Code int
	// Stdout and Stderr are all that it has written.
	Stdout, Stderr string
}

// Finish runs redlatch to its end.
func Finish(t *testing.T, url string, args ...string) Outcome {
	t.Helper()
	return Start(t, url, args...).Outcome(2 * Soon)
}

// FinishTo is Finish for a program whose standard output is a file.
func FinishTo(t *testing.T, stdout *os.File, url string, args ...string) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*Soon)
	defer cancel()
	var stderr bytes.Buffer
	cmd := command(ctx, t, []string{"REDIS_URL=" + url}, args...)
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	_ = cmd.Run() // the code says it
	require.NoError(t, ctx.Err(), "%v goes on", args)
	return Outcome{Code: cmd.ProcessState.ExitCode(), Stderr: stderr.String()}
}

// Outcome waits for the program's end.
func (p *Process) Outcome(limit time.Duration) Outcome {
	p.t.Helper()
	out := p.RestWithin(limit)
	return Outcome{p.Code(), out, p.Stderr.String()}
}

// OneLine checks that text is one line that begins as the program's lines do.
func OneLine(t *testing.T, text string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, "\n"), "%q", text)
	require.True(t, strings.HasPrefix(text, "redlatch: "), "%q", text)
}

// NoServer returns a URL with a password, of an address without a listener.
func NoServer(t *testing.T) string {
	t.Helper()
	return "redis://user:sesame@" + redistest.Refusing(t)
}

// WatchReads returns a function that returns how many of the n places and n deadlines of a queue one
// command or script has read since, at most.
func WatchReads(t *testing.T, s *redistest.Server, n int) (longest func() int) {
	t.Helper()
	watch := s.Dial(t)
	_, err := watch.Do("MONITOR")
	require.NoError(t, err)
	return func() int {
		t.Helper()
		s.Do(t, "ECHO", "the end")
		var lines []monitor.Line
		for {
			text, err := redis.String(redis.ReceiveWithTimeout(watch, 10*time.Second))
			require.NoError(t, err)
			line, err := monitor.Parse(text)
			require.NoError(t, err)
			if line.Args[0] == "ECHO" {
				most, by := monitor.LongestRead(lines, n)
				t.Logf("%d places of %d commands: %.200q", most, len(lines), by.Args)
				return most
			}
			lines = append(lines, line)
		}
	}
}
