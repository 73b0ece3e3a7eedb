package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asProgram makes the test binary be the program under test: it starts itself,
// as the program does for its hidden commands, and the race detector watches
// all of those processes.
const asProgram = "REDLATCH_TEST_AS_PROGRAM"

// soon bounds waits for what should happen at once, on a slow machine.
const soon = 10 * time.Second

// pollEvery is how often tests look at what they cannot be told of.
const pollEvery = 5 * time.Millisecond

// program is one run of redlatch.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	pipe   *os.File // below stdout
	stderr bytes.Buffer
}

// start starts redlatch against the server at url. It is killed with the test,
// if it is still there.
func start(t *testing.T, url string, args ...string) *program {
	t.Helper()
	return startWith(t, []string{"REDIS_URL=" + url}, args...)
}

func startWith(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	p := &program{t: t, cmd: exec.Command(exe, args...)}
	p.cmd.Dir = t.TempDir() // some arguments name files
	p.cmd.Env = append(append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0"), env...)
	p.cmd.Stderr = &p.stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	var ok bool
	p.pipe, ok = out.(*os.File)
	require.True(t, ok)
	p.stdout = bufio.NewReader(out)
	p.cmd.WaitDelay = time.Second // for those who keep standard error open
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// line reads one line of standard output.
func (p *program) line() string {
	p.t.Helper()
	require.NoError(p.t, p.pipe.SetReadDeadline(time.Now().Add(soon)))
	text, err := p.stdout.ReadString('\n')
	require.NoError(p.t, err, "no line of output")
	return strings.TrimSuffix(text, "\n")
}

// rest reads standard output until nobody has it open any more: redlatch, the
// command and all of its children have ended.
func (p *program) rest() string {
	p.t.Helper()
	return p.restWithin(2 * soon)
}

func (p *program) restWithin(limit time.Duration) string {
	p.t.Helper()
	require.NoError(p.t, p.pipe.SetReadDeadline(time.Now().Add(limit)))
	text, err := io.ReadAll(p.stdout)
	require.NoError(p.t, err, "somebody keeps standard output open")
	return string(text)
}

// code waits for the program's end and returns its exit code.
func (p *program) code() int {
	p.t.Helper()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(p.t, err, &exit)
	}
	return p.cmd.ProcessState.ExitCode()
}

// outcome is what a program that has ended leaves.
type outcome struct {
	code           int
	stdout, stderr string
}

// finish runs redlatch to its end.
func finish(t *testing.T, url string, args ...string) outcome {
	t.Helper()
	return start(t, url, args...).outcome(2 * soon)
}

// outcome waits for the program's end.
func (p *program) outcome(limit time.Duration) outcome {
	p.t.Helper()
	out := p.restWithin(limit)
	return outcome{p.code(), out, p.stderr.String()}
}

// oneLine checks that text is one line that begins as the program's lines do.
func oneLine(t *testing.T, text string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, "\n"), "%q", text)
	require.True(t, strings.HasPrefix(text, "redlatch: "), "%q", text)
}

// nobody returns a URL with a password at which nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "redis://user:sesame@" + l.Addr().String()
}
