package compat

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
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/rlock"
)

// The environment of a test binary that is to be a Go process of a mixed fleet.
const (
	memberURL    = "REDLATCH_TEST_MEMBER_URL"
	memberLock   = "REDLATCH_TEST_MEMBER_LOCK"
	memberFair   = "REDLATCH_TEST_MEMBER_FAIR"   // set: the lock is a fair one
	memberFenced = "REDLATCH_TEST_MEMBER_FENCED" // set: the lock is one with tokens
	memberRole   = "REDLATCH_TEST_MEMBER_ROLE"   // set: the lock is read, or written: "read", "write"
	memberTurns  = "REDLATCH_TEST_MEMBER_TURNS"  // set: so many wait for it at once
	memberCounts = "REDLATCH_TEST_MEMBER_COUNTS" // set: they count under it, in this key
)

// member is a process of a mixed fleet, in either language, that takes one lock.
type member interface {
	// lock begins to take the lock.
	lock(t *testing.T)
	// locked returns when the lock was taken, which must be at most so late.
	locked(t *testing.T, by time.Duration) time.Time
	// unlock frees the lock.
	unlock(t *testing.T)
	// kill ends the process at once, as a crash does.
	kill(t *testing.T)
}

// begin begins to take a lock of a server, at its address or a proxy's.
type begin func(t *testing.T, url, name string) member

// goMember is a Go process.
type goMember struct {
	process *os.Process
	in      io.WriteCloser
	output  chan goLine // its lines; closed with its output
}

// goLine is a line of output of a Go process, and when it came.
type goLine struct {
	text string
	at   time.Time
}

// Member ends a test binary that was started to be a Go process of a mixed fleet, when it
// has done its work. In any other it does nothing.
func Member() {
	url := os.Getenv(memberURL)
	if url == "" {
		return
	}
	loop := memberLoop
	if os.Getenv(memberTurns) != "" {
		loop = turnsLoop
	}
	if os.Getenv(memberCounts) != "" {
		loop = countLoop
	}
	if os.Getenv(memberPermits) != "" {
		loop = permitsLoop
	}
	if os.Getenv(memberPermit) != "" {
		loop = permitLoop
	}
	if err := loop(url, commands()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// commands receives the lines of standard input. The parent's death, however it dies, ends the
// pipe and us, also while a lock is waited for.
func commands() <-chan string {
	all := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			all <- in.Text()
		}
		os.Exit(0)
	}()
	return all
}

// memberLoop is what the process does: a command a line, and its outcome a line.
func memberLoop(url string, commands <-chan string) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond),
		redlatch.WithFairWaitTimeout(fairGraceMS*time.Millisecond))
	if err != nil {
		return err
	}
	lock := newMemberLock(client)
	var hold *rlock.Hold
	for what := range commands {
		var err error
		if what == "lock" {
			hold, err = lock(ctx)
		} else {
			err = hold.Unlock()
		}
		fmt.Println(what, err)
	}
	return nil
}

func startGo(t *testing.T, url, name string, env ...string) member {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), memberURL+"="+url, memberLock+"="+name), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	m := &goMember{process: cmd.Process, in: in, output: make(chan goLine, 8)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(m.output)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			m.output <- goLine{lines.Text(), time.Now()}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead by now
		<-ended
		_ = cmd.Wait()
	})
	return m
}

func (m *goMember) lock(t *testing.T) {
	t.Helper()
	m.send(t, "lock")
}

func (m *goMember) send(t *testing.T, what string) {
	t.Helper()
	_, err := fmt.Fprintln(m.in, what)
	require.NoError(t, err)
}

func (m *goMember) locked(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	return m.expect(t, "lock <nil>", by)
}

func (m *goMember) expect(t *testing.T, want string, by time.Duration) time.Time {
	t.Helper()
	select {
	case line := <-m.output:
		require.Equal(t, want, strings.TrimSpace(line.text))
		return line.at
	case <-time.After(by):
		require.FailNow(t, "the Go process did not answer", "%q in %v", want, by)
		return time.Time{}
	}
}

func (m *goMember) unlock(t *testing.T) {
	t.Helper()
	m.send(t, "unlock")
	m.expect(t, "unlock <nil>", atMost)
}

func (m *goMember) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, m.process.Kill())
}

// javaMember is a Redisson client, in a process of its own if it is to die.
type javaMember struct {
	java *java
	kind peer.Command // what its commands say of the lock's kind
	name string
	call *peer.Call
}

// startJava returns how to start clients of a process, or of a new one each, that take locks of
// a kind.
func (c *compat) startJava(shared *peer.Peer, kind peer.Command) begin {
	return func(t *testing.T, url, name string) member {
		t.Helper()
		p := shared
		if p == nil {
			p = peertest.Start(t, c.program)
		}
		return &javaMember{java: connectTo(t, p, url, peer.Command{"watchdog": watchdogMS}), kind: kind, name: name}
	}
}

func (m *javaMember) lock(t *testing.T) {
	t.Helper()
	m.call = m.java.begin(peer.Command{"op": "lock", "name": m.name}.With(m.kind))
}

func (m *javaMember) locked(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	reply, err := m.call.Wait(by)
	require.NoError(t, err)
	return reply.Ended()
}

func (m *javaMember) unlock(t *testing.T) {
	t.Helper()
	m.java.do(t, peer.Command{"op": "unlock", "name": m.name}.With(m.kind))
}

func (m *javaMember) kill(t *testing.T) {
	t.Helper()
	m.java.peer.Halt()
}
