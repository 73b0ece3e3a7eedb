package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNothingThatATestStartedOutlivesIt(t *testing.T) {
	t.Parallel()
	// In a process group of its own, and without a parent when sh has ended.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -m; sleep 1000 >/dev/null 2>&1 & echo $!")
	inSession(cmd)
	out, err := cmd.Output()
	require.NoError(t, err)
	stat := filepath.Join("/proc", strings.TrimSpace(string(out)), "stat")
	text, err := os.ReadFile(stat)
	require.NoError(t, err)
	require.Equal(t, cmd.Process.Pid, session(text))
	endSession(cmd.Process.Pid)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(stat)
		return os.IsNotExist(err) || strings.Contains(string(text), ") Z ") // a zombie: its parent has not waited for it
	}, 10*time.Second, 10*time.Millisecond)
}

func TestSessionIsReadWhateverTheNameOfTheProgram(t *testing.T) {
	t.Parallel()
	require.Equal(t, 12, session([]byte("34 (a) b) c) S 1 34 12 0 -1 4194304")))
	require.Zero(t, session([]byte("34 (a)")))
}
