//go:build unix

package gocronredlatch_test

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

// TestProcessesThatAreKilledAndStalledDoEachJobOnce kills or stalls the process that does a job,
// again and again. With REDLATCH_TEST=all it does so 200 times each, in ten fleets at a time, half of
// which have an Elector.
func TestProcessesThatAreKilledAndStalledDoEachJobOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range testlevel.Rounds(2, 10) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, s, i%2 == 1)
			for range testlevel.Rounds(1, 20) {
				f.kill()
				f.stall()
			}
			f.judge()
		})
	}
}

// fleet is three processes that schedule one job.
type fleet struct {
	t         *testing.T
	variable  string
	file      *os.File
	processes map[int]*exec.Cmd
	all       []step // read so far
	rest      string // of a line that was read in part
}

func newFleet(t *testing.T, s *redistest.Server, elected bool) *fleet {
	t.Helper()
	name := filepath.Join(t.TempDir(), "steps")
	file, err := os.Create(name)
	require.NoError(t, err)
	variable := fmt.Sprintf("%s=%s %s %v %s", asScheduler, s.URL(), redistest.Key(t), elected, name)
	f := &fleet{t: t, variable: variable, file: file, processes: map[int]*exec.Cmd{}}
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

func (f *fleet) add() {
	cmd := exec.Command(os.Args[0]) //nolint:noctx // killed with the test
	cmd.Env = append(os.Environ(), f.variable)
	cmd.Stderr = os.Stderr
	require.NoError(f.t, cmd.Start())
	f.processes[cmd.Process.Pid] = cmd
}

// step is what a run did.
type step struct {
	at  int64
	run string // the process and its number
}

func (s step) pid() int {
	pid, _, _ := strings.Cut(s.run, ".")
	n, _ := strconv.Atoi(pid)
	return n
}

// read reads the steps that have been written since.
func (f *fleet) read() []step {
	text, err := io.ReadAll(f.file)
	require.NoError(f.t, err)
	lines := strings.Split(f.rest+string(text), "\n")
	f.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		var s step
		_, err := fmt.Sscan(line, &s.at, &s.run)
		require.NoError(f.t, err, line)
		f.all = append(f.all, s)
	}
	return f.all
}

// runner waits until a process that is not the one given does the job, and returns it.
func (f *fleet) runner(not int) int {
	began, found := time.Now(), 0
	require.Eventually(f.t, func() bool {
		all := f.read()
		if len(all) == 0 {
			return false
		}
		last := all[len(all)-1]
		found = last.pid()
		return found != not && last.at > began.UnixNano()
	}, soon, 20*time.Millisecond, "no process does the job")
	return found
}

// kill kills the process that does the job, in the middle of a run, and starts another one.
func (f *fleet) kill() {
	pid := f.runner(0)
	time.Sleep(time.Duration(rand.IntN(int(trialWork))))
	require.NoError(f.t, f.processes[pid].Process.Kill())
	_ = f.processes[pid].Wait()
	delete(f.processes, pid)
	f.add()
	f.runner(pid)
}

// stall stops the process that does the job until another one does it, and for a while longer.
func (f *fleet) stall() {
	pid := f.runner(0)
	require.NoError(f.t, f.processes[pid].Process.Signal(syscall.SIGSTOP))
	f.runner(pid)
	time.Sleep(time.Duration(rand.IntN(int(trialPeriod))))
	require.NoError(f.t, f.processes[pid].Process.Signal(syscall.SIGCONT))
	time.Sleep(100 * time.Millisecond)
}

// judge wants that each period had one run, and that none began before the one before it had ended.
func (f *fleet) judge() {
	first, last := map[string]int64{}, map[string]int64{}
	for _, s := range f.read() {
		if _, known := first[s.run]; !known {
			first[s.run] = s.at
		}
		last[s.run] = max(last[s.run], s.at)
	}
	periods := map[int64]string{}
	least, most := int64(1<<62), int64(0)
	for run, began := range first {
		period := (began + int64(trialPeriod)/2) / int64(trialPeriod)
		require.Empty(f.t, periods[period], "the period %d has two runs, of which one is %s", period, run)
		periods[period] = run
		least, most = min(least, period), max(most, period)
		for other := range first {
			if run != other && began < first[other] {
				require.Less(f.t, last[run], first[other], "the runs %s and %s are one in the other", run, other)
			}
		}
	}
	require.Len(f.t, periods, int(most-least+1), "there are periods without a run")
	f.t.Logf("%d runs, one in each period", len(first))
}
