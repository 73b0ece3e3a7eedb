//go:build unix

package trials

import (
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const soon = time.Minute

// Fleet is a group of three processes, only one of which works at a time. It is not safe for concurrent use.
type Fleet struct {
	t         *testing.T
	args      Args
	steps     *os.File
	processes map[int]*exec.Cmd
	all       []step
	rest      string
}

// Start starts the processes.
func Start(t *testing.T, args Args) *Fleet {
	t.Helper()
	args.file = filepath.Join(t.TempDir(), "steps")
	file, err := os.Create(args.file)
	require.NoError(t, err)
	f := &Fleet{t: t, args: args, steps: file, processes: map[int]*exec.Cmd{}}
	t.Cleanup(func() {
		require.NoError(t, file.Close())
		for _, p := range f.processes {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	for range 3 {
		f.add()
	}
	return f
}

func (f *Fleet) add() {
	f.t.Helper()
	cmd := exec.Command(os.Args[0]) //nolint:noctx // killed when the test ends
	cmd.Env = append(os.Environ(), asProcess+"="+f.args.String())
	cmd.Stderr = os.Stderr
	require.NoError(f.t, cmd.Start())
	f.processes[cmd.Process.Pid] = cmd
}

func (f *Fleet) read() []step {
	f.t.Helper()
	text, err := io.ReadAll(f.steps)
	require.NoError(f.t, err)
	steps, rest, err := parseSteps(f.rest + string(text))
	require.NoError(f.t, err)
	f.all, f.rest = append(f.all, steps...), rest
	return f.all
}

// worker waits until a process with a PID other than not is working, and returns that PID.
func (f *Fleet) worker(not int) int {
	f.t.Helper()
	began, found := time.Now().UnixNano(), 0
	require.Eventually(f.t, func() bool {
		all := f.read()
		if len(all) == 0 {
			return false
		}
		last := all[len(all)-1]
		found = last.pid
		return found != not && last.at > began
	}, soon, 20*time.Millisecond, "no process works")
	return found
}

// Kill kills the working process at a random time, replaces it, and waits until another process is working.
func (f *Fleet) Kill(within time.Duration) {
	f.t.Helper()
	pid := f.worker(0)
	time.Sleep(rand.N(within))
	require.NoError(f.t, f.processes[pid].Process.Kill())
	_ = f.processes[pid].Wait()
	delete(f.processes, pid)
	f.add()
	f.worker(pid)
}

// Stall stops the working process until another one is working, and then for a further random time.
func (f *Fleet) Stall(longer time.Duration) {
	f.t.Helper()
	pid := f.worker(0)
	require.NoError(f.t, f.processes[pid].Process.Signal(syscall.SIGSTOP))
	f.worker(pid)
	time.Sleep(rand.N(longer))
	require.NoError(f.t, f.processes[pid].Process.Signal(syscall.SIGCONT))
	time.Sleep(100 * time.Millisecond)
}

// Judge returns the runs in order. The test fails if two runs overlap.
func (f *Fleet) Judge() []Run {
	f.t.Helper()
	steps := f.read()
	all, err := runs(steps)
	require.NoError(f.t, err)
	f.t.Logf("%d runs, %d steps", len(all), len(steps))
	return all
}
