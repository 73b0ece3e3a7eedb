package rlock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// The environment of a test binary that is to be one of several processes that
// take a lock as often as they can.
const (
	sharerURL   = "RLOCK_TEST_SHARER_URL"
	sharerLock  = "RLOCK_TEST_SHARER_LOCK"
	sharerN     = "RLOCK_TEST_SHARER_N"
	sharerUntil = "RLOCK_TEST_SHARER_UNTIL"
)

func init() {
	roles[sharerURL] = func(url string) {
		n, err := takeShare(url)
		fmt.Println(n, err)
		os.Exit(0)
	}
}

// takeShare takes the lock with many goroutines, counts from when the parent says
// that all processes are there, and returns how often it got it.
func takeShare(url string) (int64, error) {
	goroutines, err := strconv.Atoi(os.Getenv(sharerN))
	if err != nil {
		return 0, err
	}
	length, err := time.ParseDuration(os.Getenv(sharerUntil))
	if err != nil {
		return 0, err
	}
	client, err := redlatch.Open(context.Background(), url)
	if err != nil {
		return 0, err
	}
	fmt.Println("ready")
	parent := bufio.NewReader(os.Stdin)
	if _, err := parent.ReadString('\n'); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := rlock.New(client, os.Getenv(sharerLock))
	var n atomic.Int64
	in := make(chan struct{}, 1) // it has had the lock once
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for ctx.Err() == nil {
				hold, err := l.Lock(ctx)
				if err != nil {
					return
				}
				if n.Add(1) == 1 {
					in <- struct{}{}
				}
				_ = hold.Unlock()
			}
		})
	}
	<-in
	fmt.Println("in")
	if _, err := parent.ReadString('\n'); err != nil {
		return 0, err
	}
	before := n.Load()
	time.Sleep(length) // what is measured
	count := n.Load() - before
	cancel()
	wg.Wait()
	return count, client.Close()
}

// sharer is one of the processes.
type sharer struct {
	start func() error
	said  *bufio.Reader
}

func startSharer(t *testing.T, url, name string, goroutines int, length time.Duration) sharer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), sharerURL+"="+url, sharerLock+"="+name,
		sharerN+"="+strconv.Itoa(goroutines), sharerUntil+"="+length.String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be done
		_ = cmd.Wait()
	})
	s := sharer{said: bufio.NewReader(out)}
	s.start = func() error { _, err := fmt.Fprintln(in); return err }
	require.NoError(t, expectLine(s.said, "ready"))
	return s
}

// expectLine reads what a process says next, which must be want.
func expectLine(r *bufio.Reader, want string) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(line); got != want {
		return fmt.Errorf("it says %q, not %q", got, want)
	}
	return nil
}

// shares runs the processes and returns what part of the acquisitions each got.
func shares(t *testing.T, processes, goroutines int, length time.Duration) []float64 {
	t.Helper()
	s := redistest.Start(t)
	name := redistest.Key(t)
	var all []sharer
	for range processes {
		all = append(all, startSharer(t, s.URL(), name, goroutines, length))
	}
	for _, p := range all {
		require.NoError(t, p.start())
	}
	// The process that starts first has the lock alone for a while: that is
	// not counted.
	for _, p := range all {
		require.NoError(t, expectLine(p.said, "in"))
	}
	for _, p := range all {
		require.NoError(t, p.start())
	}
	counts := make([]float64, processes)
	var total float64
	for i, p := range all {
		line, err := p.said.ReadString('\n')
		require.NoError(t, err)
		count, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		require.Equal(t, "<nil>", rest)
		counts[i], err = strconv.ParseFloat(count, 64)
		require.NoError(t, err)
		total += counts[i]
	}
	for i := range counts {
		counts[i] /= total
	}
	t.Logf("%.3f of %.0f in %v", counts, total, length)
	until(t, soon, "the lock is free", func() bool { return !locked(t, s, name) })
	return counts
}

// Not parallel: it measures.
func TestProcessesShareALockEvenly(t *testing.T) {
	testlevel.All(t, "several processes, 25 s")
	for _, c := range []struct {
		processes, goroutines int
		length                time.Duration
		least, most           float64
	}{
		{8, 16, 15 * time.Second, 0.06, 0.20},
		{2, 50, 10 * time.Second, 0.35, 0.65},
	} {
		onceOfThree(t, func() error {
			for _, share := range shares(t, c.processes, c.goroutines, c.length) {
				if share < c.least || share > c.most {
					return fmt.Errorf("a share of %.3f", share)
				}
			}
			return nil
		})
	}
}

// onceOfThree measures until the result is good, three times at most. Other load of the machine
// may have made one bad; a queue that is unfair makes all of them bad.
func onceOfThree(t *testing.T, measure func() error) {
	t.Helper()
	var err error
	for range 3 {
		if err = measure(); err == nil {
			return
		}
		t.Log(err)
	}
	require.NoError(t, err)
}
