//go:build unix

package leader_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// TestProcessesThatAreKilledAndStalledNeverLeadTogether kills or stalls the leader, again and
// again. `make test-all` does it 200 times each, in ten elections at a time.
func TestProcessesThatAreKilledAndStalledNeverLeadTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range testlevel.Rounds(1, 10) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			e := newElection(t, s, i%2 == 1)
			for range testlevel.Rounds(1, 20) {
				e.kill()
				e.stall()
			}
			e.judge()
		})
	}
}

// election is three processes of which one leads.
type election struct {
	t         *testing.T
	variable  string
	file      *os.File
	processes map[int]*exec.Cmd
	all       []step // read so far
	rest      string // of a line that was read in part
}

func newElection(t *testing.T, s *redistest.Server, fair bool) *election {
	t.Helper()
	file := filepath.Join(t.TempDir(), "steps")
	f, err := os.Create(file)
	require.NoError(t, err)
	variable := fmt.Sprintf("%s=%s %s %v %s", asCandidate, s.URL(), redistest.Key(t), fair, file)
	e := &election{t: t, variable: variable, file: f, processes: map[int]*exec.Cmd{}}
	t.Cleanup(func() {
		require.NoError(t, f.Close())
		for _, p := range e.processes {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	for range 3 {
		e.add()
	}
	return e
}

func (e *election) add() {
	cmd := exec.Command(os.Args[0]) //nolint:noctx // killed with the test
	cmd.Env = append(os.Environ(), e.variable)
	cmd.Stderr = os.Stderr
	require.NoError(e.t, cmd.Start())
	e.processes[cmd.Process.Pid] = cmd
}

// step is what a leader did.
type step struct {
	at   int64
	term string // the process and its number
}

func (s step) pid() int {
	pid, _, _ := strings.Cut(s.term, ".")
	n, _ := strconv.Atoi(pid)
	return n
}

// read reads the steps that have been written since.
func (e *election) read() []step {
	text, err := io.ReadAll(e.file)
	require.NoError(e.t, err)
	lines := strings.Split(e.rest+string(text), "\n")
	e.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		var s step
		_, err := fmt.Sscan(line, &s.at, &s.term)
		require.NoError(e.t, err, line)
		e.all = append(e.all, s)
	}
	return e.all
}

// leader waits until a process leads that is not the one given, and returns it.
func (e *election) leader(not int) int {
	began, found := time.Now(), 0
	require.Eventually(e.t, func() bool {
		all := e.read()
		if len(all) == 0 {
			return false
		}
		last := all[len(all)-1]
		found = last.pid()
		return found != not && last.at > began.UnixNano()
	}, soon, 20*time.Millisecond, "no process leads")
	return found
}

// kill kills the leader, and starts another candidate.
func (e *election) kill() {
	pid := e.leader(0)
	time.Sleep(time.Duration(rand.IntN(int(trialLease / 2))))
	require.NoError(e.t, e.processes[pid].Process.Kill())
	_ = e.processes[pid].Wait()
	delete(e.processes, pid)
	e.add()
	e.leader(pid)
}

// stall stops the leader until another one leads, and lets it go on.
func (e *election) stall() {
	pid := e.leader(0)
	require.NoError(e.t, e.processes[pid].Process.Signal(syscall.SIGSTOP))
	e.leader(pid)
	require.NoError(e.t, e.processes[pid].Process.Signal(syscall.SIGCONT))
	time.Sleep(100 * time.Millisecond)
}

// judge wants that no term began before the one before it had ended.
func (e *election) judge() {
	first, last := map[string]int64{}, map[string]int64{}
	all := e.read()
	for _, s := range all {
		if _, known := first[s.term]; !known {
			first[s.term] = s.at
		}
		last[s.term] = max(last[s.term], s.at)
	}
	for a := range first {
		for b := range first {
			if a != b && first[a] < first[b] {
				require.Less(e.t, last[a], first[b], "the terms %s and %s are one in the other", a, b)
			}
		}
	}
	e.t.Logf("%d terms, %d steps", len(first), len(all))
}
