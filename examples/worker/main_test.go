package main

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

const asWorker = "REDLATCH_EXAMPLE_WORKER"

func TestMain(m *testing.M) {
	if url := os.Getenv(asWorker); url != "" {
		os.Args = []string{"worker", url}
		main()
		return
	}
	redistest.Main(m)
}

func TestSIGTERMFinishesWorkAndReleasesLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"="+s.URL())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "working on 1", lines.Text())
	require.EqualValues(t, 1, s.Do(t, "EXISTS", "worker-example"))

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.False(t, lines.Scan(), "no new work starts")
	require.NoError(t, cmd.Wait())
	require.EqualValues(t, 0, s.Do(t, "EXISTS", "worker-example"), "the lock is free at once")
}
