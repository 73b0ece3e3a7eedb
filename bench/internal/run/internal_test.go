package run

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
)

// resting returns a runner, its log, and a party that runs command and is kept for the next round.
func resting(t *testing.T, command ...string) (*Runner, *strings.Builder, party) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("what a process does is looked up as Linux tells it")
	}
	var log strings.Builder
	r := &Runner{Log: &log, launcher: host.NewLauncher(), kept: map[string]*session{}}
	t.Cleanup(r.launcher.Close)
	e := Entrant{Label: "kept", Contestant: contest.Contestant{Java: true}, Command: command}
	s, err := r.session(e, 0, host.Free)
	require.NoError(t, err)
	return r, &log, party{session: s, entrant: e}
}

// A JVM that compiles in the background would use the others' processors.
func TestIdleClientIsStopped(t *testing.T) {
	t.Parallel()
	r, log, p := resting(t, "cat")
	r.part([]party{p}, nil)
	stopped := func() bool { return state(t, p.cmd.Process.Pid) == "T" }
	require.Eventually(t, stopped, time.Minute, time.Millisecond, "it rests when its turn is over")
	assert.True(t, p.used)

	again, err := r.session(p.entrant, 0, host.Free)
	require.NoError(t, err)
	assert.Same(t, p.session, again, "it is kept")
	require.Eventually(t, func() bool { return !stopped() }, time.Minute, time.Millisecond, "its turn has come")

	r.part([]party{p}, nil)
	p.close()
	assert.True(t, p.cmd.ProcessState.Success(), "it is woken, and ends by itself")
	assert.Empty(t, log.String())
}

// The JVM's compilation affects its next turn.
func TestBusyClientIsNotStopped(t *testing.T) {
	t.Parallel()
	r, _, p := resting(t, "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exec cat")
	r.part([]party{p}, nil)
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.cmd.Process.Pid))
	require.NoError(t, err)
	assert.Equal(t, "cat\n", string(name), "it has done its work")
	p.close()
}

func TestWaitForIdleClientTimesOut(t *testing.T) {
	t.Parallel()
	_, _, p := resting(t, "sh", "-c", "while :; do :; done")
	assert.False(t, calm([]party{p}, 2*restLook))
	require.NoError(t, p.cmd.Process.Kill())
	p.close()
}

func TestUnresponsiveClientIsDropped(t *testing.T) {
	t.Parallel()
	r, log, p := resting(t, "cat")
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait(), "it was killed")
	_, err := r.session(p.entrant, 0, host.Free)
	require.ErrorIs(t, err, os.ErrProcessDone)
	assert.Empty(t, r.kept)

	r.kept["kept0"] = p.session
	r.part([]party{p}, nil)
	assert.Empty(t, r.kept)
	assert.Contains(t, log.String(), "cannot stop kept")
}

// state returns the state letter of a process on Linux.
func state(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}
