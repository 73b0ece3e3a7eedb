package rlock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// The environment of a test binary that is to be a holder.
const (
	holderURL   = "RLOCK_TEST_HOLDER_URL"
	holderLock  = "RLOCK_TEST_HOLDER_LOCK"
	holderLease = "RLOCK_TEST_HOLDER_LEASE"
)

// holdUntilKilled takes a renewed lock, says so, and keeps it.
func holdUntilKilled(url string) {
	client, err := redlatch.Open(context.Background(), url)
	if err == nil {
		lease, _ := time.ParseDuration(os.Getenv(holderLease)) // zero, which Lock refuses, if it is none
		_, err = rlock.New(client, os.Getenv(holderLock)).
			Lock(context.Background(), rlock.WithWatchdog(lease))
	}
	fmt.Println("held", err)
	if err != nil {
		os.Exit(1)
	}
	// The parent's death, however it dies, ends the pipe and us.
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// startHolder starts a process that holds the lock, with such a lease, and returns when it does.
func startHolder(t *testing.T, url, name string, lease time.Duration) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderURL+"="+url, holderLock+"="+name, holderLease+"="+lease.String())
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead by now
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held <nil>", strings.TrimSpace(line))
	return cmd
}
