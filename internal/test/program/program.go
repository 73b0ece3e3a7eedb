// Package program runs redlatch as a program for the tests of its commands. TestMain must call Main. Start and Finish
// run the test binary again with Env set, so that the race detector also covers the program.
package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Env is the environment variable that makes the test binary run as redlatch.
const Env = "REDLATCH_TEST_AS_PROGRAM"

// DefaultLabel makes the program write its default label.
const DefaultLabel = "REDLATCH_LABEL=" + byDefault

const byDefault = "its default"

// Main runs the tests or, if Env is set, redlatch with the given commands.
func Main[C any](m *testing.M, execute func(context.Context, []string, ...C) int, commands ...C) {
	if os.Getenv("REDLATCH_LABEL") == byDefault {
		_ = os.Unsetenv("REDLATCH_LABEL")
	}
	run := func(args []string) int { return execute(context.Background(), args, commands...) }
	switch os.Getenv(Env) {
	case once:
		os.Exit(run(os.Args[1:]))
	case resident:
		if err := serveCalls(run); !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	heedSignals()
	redistest.Main(m)
}

// heedSignals resets signals that the shell or nohup made this process ignore.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// Soon is the time limit for events that should happen, even on a slow machine.
const Soon = 10 * time.Second

// PollEvery is the interval at which tests poll.
const PollEvery = 5 * time.Millisecond

// Process is one run of redlatch.
type Process struct {
	Cmd    *exec.Cmd
	Stdin  io.WriteCloser
	Stderr bytes.Buffer

	t      *testing.T
	stdout *bufio.Reader
	pipe   *os.File
}

// Start starts redlatch with the server at url. It is stopped when the test ends.
func Start(t *testing.T, url string, args ...string) *Process {
	t.Helper()
	return StartWith(t, []string{"REDIS_URL=" + url}, args...)
}

// StartWith is like Start, but sets environment variables instead of the URL.
func StartWith(t *testing.T, env []string, args ...string) *Process {
	t.Helper()
	p, err := StartIn(t, nil, env, args...)
	require.NoError(t, err)
	return p
}

// StartIn is like StartWith, but also sets process attributes and returns errors.
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
	p.Cmd.WaitDelay = time.Second // children may keep standard error open
	if err := p.Cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill()
		_ = p.Cmd.Wait()
	})
	return p, nil
}

func command(ctx context.Context, t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), Env+"="+once, "GORACE=atexit_sleep_ms=0"), env...)
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

// Rest returns the rest of standard output. It waits until redlatch and its children have exited.
func (p *Process) Rest() string {
	p.t.Helper()
	return p.RestWithin(2 * Soon)
}

// RestWithin is Rest with a time limit.
func (p *Process) RestWithin(limit time.Duration) string {
	p.t.Helper()
	require.NoError(p.t, p.pipe.SetReadDeadline(time.Now().Add(limit)))
	text, err := io.ReadAll(p.stdout)
	require.NoError(p.t, err, "a process keeps standard output open")
	return string(text)
}

// Code waits until the program has exited, and returns its exit code.
func (p *Process) Code() int {
	p.t.Helper()
	err := p.Cmd.Wait()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(p.t, err, &exit)
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Outcome is the result of a program. Code is -1 if it was ended by a signal.
type Outcome struct {
	Code           int
	Stdout, Stderr string
}

// Finish runs redlatch and waits until it has finished. It prefers a process that has already run other commands.
func Finish(t *testing.T, url string, args ...string) Outcome {
	t.Helper()
	return finish(t, url, args, "demo", "hold", "release", "run", "__guard")
}

func finish(t *testing.T, url string, args []string, apart ...string) Outcome {
	t.Helper()
	if slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(apart, arg) }) {
		return Start(t, url, args...).Outcome(2 * Soon)
	}
	return finishInResident(t, url, args)
}

// FinishTo is like Finish, but writes standard output to a file.
func FinishTo(t *testing.T, stdout *os.File, url string, args ...string) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*Soon)
	defer cancel()
	var stderr bytes.Buffer
	cmd := command(ctx, t, []string{"REDIS_URL=" + url}, args...)
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	_ = cmd.Run()
	require.NoError(t, ctx.Err(), "%v goes on", args)
	return Outcome{Code: cmd.ProcessState.ExitCode(), Stderr: stderr.String()}
}

// Outcome waits until the program has exited, and returns its result.
func (p *Process) Outcome(limit time.Duration) Outcome {
	p.t.Helper()
	out := p.RestWithin(limit)
	return Outcome{p.Code(), out, p.Stderr.String()}
}

// OneLine requires that text is a single line that begins with the program's name.
func OneLine(t *testing.T, text string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, "\n"), "%q", text)
	require.True(t, strings.HasPrefix(text, "redlatch: "), "%q", text)
}

// NoServer returns a URL with a password and an address that refuses connections.
func NoServer(t *testing.T) string {
	t.Helper()
	return "redis://user:sesame@" + redistest.Refusing(t)
}

// WatchReads starts MONITOR. The function that it returns reports the LongestRead since then on a queue of n waiters.
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
