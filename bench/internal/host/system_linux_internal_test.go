//go:build linux

package host

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCPUTimeIncludesUserAndSystem(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 3*time.Second, parseCPUTime("7 (a b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 9 9 20 0 1 0 5 6 7"))
	for _, bad := range []string{"", "7 (a) S 1", "7 (a) S 1 7 7 0 -1 4194560 100 0 0 0 x 50 9 9", "7 (a) S 1 7 7 0 -1 4194560 100 0 0 0 250 x 9 9"} {
		assert.Zero(t, parseCPUTime(bad), bad)
	}
}

func TestCPUTimeSumsProcesses(t *testing.T) {
	t.Parallel()
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	one := time.Duration(0)
	for one == 0 { // until there is something to count
		one = CPUTime(self, &os.Process{Pid: 1 << 30})
	}
	assert.GreaterOrEqual(t, CPUTime(self, self), 2*one)
}

func TestThreadWaitingForCPUIsRunnable(t *testing.T) {
	t.Parallel()
	assert.True(t, isRunnable("7 (a b) c) R 1 7 7 0"))
	for _, other := range []string{"7 (a R ) S 1 7", "7 (a) T 1 7", "7 (a)", ""} {
		assert.False(t, isRunnable(other), other)
	}
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	assert.True(t, Runnable(self), "it runs this test")
	assert.False(t, Runnable(&os.Process{Pid: 1 << 30}))
}

func TestParseProcStat(t *testing.T) {
	t.Parallel()
	m, ok := parseMachine("cpu  100 1 50 800 10 0 9 30 7 0\ncpu0 1 2 3\n")
	assert.True(t, ok)
	assert.Equal(t, machine{stolen: 30, total: 1000}, m)
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu 1 2 3 4 5 6 7 x"} {
		_, ok := parseMachine(text)
		assert.False(t, ok, text)
	}
	assert.Equal(t, runtime.GOOS == "linux", readMachine().total > 0)
}

func TestShareUsesTimeBetweenSamples(t *testing.T) {
	t.Parallel()
	early, late := machine{stolen: 10, total: 1000}, machine{stolen: 60, total: 1200}
	assert.InDelta(t, 0.25, late.since(early), 1e-9)
	assert.Zero(t, early.since(early))
	assert.Zero(t, early.since(late))
	assert.Zero(t, machine{stolen: 9, total: 1100}.since(early), "some systems count back")
	work := Info{machine: late}.Since(Info{machine: early}, nil)
	assert.InDelta(t, 0.25, work.Stolen, 1e-9)
}
