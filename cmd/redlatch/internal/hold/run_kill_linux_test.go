package hold

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestKernelKillsTheCommandWithRedlatchEvenWithoutItsGuard(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	// The fifth field is the process group, which has the guard's number.
	p := program.Start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c",
		"read pid name state ppid group rest < /proc/$$/stat; echo $group; exec sleep 300")
	guard, err := strconv.Atoi(p.Line())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(guard, syscall.SIGKILL))
	require.NoError(t, p.Cmd.Process.Kill())
	require.Empty(t, p.Rest())
	require.Equal(t, -1, p.Code())
}

func TestGuardRefusesToBeStartedByHand(t *testing.T) {
	t.Parallel()
	// The program is in the test's process group, which it must not kill.
	got := program.Finish(t, program.NoServer(t), "__guard")
	require.Equal(t, 125, got.Code)
	require.Contains(t, got.Stderr, "not by hand")
}
