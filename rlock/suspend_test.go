//go:build unix

package rlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// The environment of a child process that is suspended while it holds a lock.
const (
	sleeperURL  = "RLOCK_TEST_SLEEPER_URL"
	sleeperLock = "RLOCK_TEST_SLEEPER_LOCK"
)

func init() { roles[sleeperURL] = sleepAndTell }

// The process sleeps for longer than its lease.
const (
	sleeperLease = 2 * time.Second
	sleeperSleep = 2500 * time.Millisecond
)

// sleepAndTell acquires locks in a loop and watches the clock. After a jump it first reports what
// the hold says.
func sleepAndTell(url string) {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	in := bufio.NewReader(os.Stdin)
	for i := 0; ; i++ {
		opt := rlock.WithWatchdog(sleeperLease)
		if i%2 == 1 {
			opt = rlock.WithLease(sleeperLease)
		}
		hold, err := rlock.New(client, fmt.Sprintf("%s-%d", os.Getenv(sleeperLock), i)).Lock(ctx, opt)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		work := hold.Context(ctx)
		first, second := func() error { return hold.Err() }, func() error { return work.Err() }
		if i%4 >= 2 {
			first, second = second, first
		}
		last := time.Now()
		fmt.Println("held") // from here on it may be stopped
		for now := time.Now(); now.Sub(last) < sleeperLease; now = time.Now() {
			last = now
		}
		one, two := first(), second()
		both := errors.Join(one, two)
		fmt.Println("woke", one != nil && two != nil && errors.Is(both, redlatch.ErrLost) &&
			errors.Is(both, context.Canceled) && errors.Is(context.Cause(work), redlatch.ErrLost))
		if _, err := in.ReadString('\n'); err != nil {
			os.Exit(0) // the parent is done, or dead
		}
	}
}

func TestU3SuspendedHolderKnowsOfItsLossAtItsFirstInstruction(t *testing.T) {
	testlevel.All(t, "processes and real leases, 14 s")
	t.Parallel()
	const processes, trials = 10, 5
	s := redistest.Start(t)
	var wg sync.WaitGroup
	for range processes {
		name := redistest.Key(t)
		wg.Go(func() { assert.NoError(t, suspendAgainAndAgain(t, s, name, trials)) })
	}
	wg.Wait()
}

func suspendAgainAndAgain(t *testing.T, s *redistest.Server, name string, trials int) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), sleeperURL+"="+s.URL(), sleeperLock+"="+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}()
	said := bufio.NewReader(out)
	for range trials {
		if err := suspendOnce(cmd.Process, said); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(in); err != nil {
			return err
		}
	}
	return nil
}

func suspendOnce(p *os.Process, said *bufio.Reader) error {
	if err := expectLine(said, "held"); err != nil {
		return err
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	<-time.After(sleeperSleep)
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	return expectLine(said, "woke true")
}

// expectLine reads a line of a process.
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
