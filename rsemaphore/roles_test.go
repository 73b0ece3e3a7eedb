package rsemaphore_test

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
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// The environment of a test program that holds permits until it is killed.
const (
	holderURL  = "SEMAPHORE_HOLDER_URL"
	holderName = "SEMAPHORE_HOLDER_NAME"
)

const crashLease = 6 * time.Second

func TestMain(m *testing.M) {
	if url := os.Getenv(holderURL); url != "" {
		holdUntilKilled(url)
	}
	redistest.Main(m)
}

func holdUntilKilled(url string) {
	client, err := redlatch.Open(context.Background(), url)
	if err == nil {
		sem := rsemaphore.NewExpirable(client, os.Getenv(holderName))
		_, err = sem.Acquire(context.Background(), 2, rsemaphore.WithWatchdog(crashLease))
	}
	fmt.Println("held", err)
	if err != nil {
		os.Exit(1)
	}
	// The parent's death ends the pipe and this process.
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// startHolder starts a process and waits until it holds two permits.
func startHolder(t *testing.T, url, name string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderURL+"="+url, holderName+"="+name)
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

func TestPermitsOfAKilledProcessComeBackWithinItsLease(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	sem := newSemaphore(t, 3)
	other := same(t, sem)
	holder := startHolder(t, s.URL(), sem.Name())
	time.Sleep(crashLease + 500*time.Millisecond)
	counts(t, sem, 1, 3) // they are renewed
	last := take(t, sem, 1)
	waiters := []<-chan acquired{later(within(t), sem, 1), later(within(t), other, 1), later(within(t), other, 1)}
	listening(t, sem.Name(), 2)
	require.NoError(t, holder.Process.Kill())
	began := time.Now()
	var came []*rsemaphore.Hold
	for len(came) < 2 {
		for i, c := range waiters {
			select {
			case a := <-c:
				require.NoError(t, a.Err)
				came = append(came, a.Hold)
				waiters[i] = nil
			case <-time.After(time.Millisecond):
			}
		}
		require.Less(t, time.Since(began), crashLease+5*time.Second)
	}
	require.Greater(t, time.Since(began), crashLease/3)
	for _, c := range waiters {
		if c != nil {
			waits(t, c)
			release(t, last)
			came = append(came, must(t, c))
		}
	}
	release(t, came...)
	whole(t, sem, 3)
}
