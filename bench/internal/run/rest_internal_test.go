package run

import (
	"fmt"
	"io"
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

// One that compiles while others measure takes their processors.
func TestWhoIsKeptRestsWhileOthersMeasure(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("what a process does is looked up as Linux tells it")
	}
	r := &Runner{Log: io.Discard, launcher: host.NewLauncher(), kept: map[string]*session{}}
	defer r.launcher.Close()
	e := Entrant{Label: "kept", Contestant: contest.Contestant{Java: true}, Command: []string{"cat"}}

	s, err := r.session(e, 0, host.Free)
	require.NoError(t, err)
	r.part([]party{{session: s, entrant: e}}, nil)
	stopped := func() bool { return state(t, s.cmd.Process.Pid) == "T" }
	require.Eventually(t, stopped, 5*time.Second, time.Millisecond, "it rests when its turn is over")

	again, err := r.session(e, 0, host.Free)
	require.NoError(t, err)
	assert.Same(t, s, again, "it is kept")
	require.Eventually(t, func() bool { return !stopped() }, 5*time.Second, time.Millisecond, "its turn has come")

	r.part([]party{{session: s, entrant: e}}, nil)
	began := time.Now()
	s.close()
	assert.Less(t, time.Since(began), 4*time.Second, "it is woken, and ends by itself")
	assert.True(t, s.cmd.ProcessState.Success())
}

// state returns the letter that Linux has for what a process does.
func state(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}
