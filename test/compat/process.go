package compat

import (
	"bufio"
	"cmp"
	"context"
	"errors"
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
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

const (
	memberURL    = "REDLATCH_TEST_MEMBER_URL"
	memberLock   = "REDLATCH_TEST_MEMBER_LOCK"
	memberKind   = "REDLATCH_TEST_MEMBER_KIND"
	memberTurns  = "REDLATCH_TEST_MEMBER_TURNS"
	memberCounts = "REDLATCH_TEST_MEMBER_COUNTS"
)

// fairGraceMS is the time in milliseconds for which a Go process keeps its place in the queue.
const fairGraceMS = 2500

// Member runs a Go process of a mixed fleet and exits if the environment requests this. Otherwise, it returns.
func Member() {
	url := os.Getenv(memberURL)
	if url == "" {
		return
	}
	loop := memberLoop
	switch {
	case os.Getenv(memberTurns) != "":
		loop = turnsLoop
	case os.Getenv(memberCounts) != "":
		loop = countLoop
	}
	if err := loop(url, commands()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// commands returns the lines of standard input. It exits the process when the parent dies.
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

func memberLoop(url string, commands <-chan string) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond),
		redlatch.WithFairWaitTimeout(fairGraceMS*time.Millisecond))
	if err != nil {
		return err
	}
	var release func() error
	for what := range commands {
		var err error
		if what == "lock" {
			release, err = take(ctx, client, os.Getenv(memberKind), os.Getenv(memberLock), 0)
		} else {
			err = release()
		}
		fmt.Println(what, err)
	}
	return nil
}

const (
	withIDs  = "permits"
	counting = "semaphore"
)

var ourKinds = map[string]string{"spin": "plain", nonReentrant: "plain", nonReentrant + "Fair": "fair"}

// take acquires a lock or permit, and returns the function that releases it. If lease is 0, it is renewed.
func take(
	ctx context.Context, client *redlatch.Client, kind, name string, lease time.Duration,
) (release func() error, err error) {
	var opts []rlock.Option
	if lease > 0 {
		opts = append(opts, rlock.WithLease(lease))
	}
	switch kind {
	case counting:
		counter := rsemaphore.New(client, name)
		return func() error { return counter.Release(context.Background(), 1) }, counter.Acquire(ctx, 1)
	case withIDs:
		hold, err := rsemaphore.NewExpirable(client, name).Acquire(ctx, 1, opts...)
		if err != nil {
			return nil, err
		}
		return hold.Release, nil
	case "fenced":
		hold, err := rfencedlock.New(client, name).Lock(ctx, opts...)
		if err != nil {
			return nil, err
		}
		return hold.Unlock, nil
	}
	for _, k := range lockKinds {
		if k.java == cmp.Or(ourKinds[kind], kind) {
			hold, err := k.ours(client, name).Lock(ctx, opts...)
			if err != nil {
				return nil, err
			}
			return hold.Unlock, nil
		}
	}
	return nil, errors.New("no such kind: " + kind)
}

type member interface {
	lock(t *testing.T)
	locked(t *testing.T, by time.Duration) time.Time
	release(t *testing.T)
	released(t *testing.T)
	kill(t *testing.T)
}

func unlock(t *testing.T, m member) {
	t.Helper()
	m.release(t)
	m.released(t)
}

type begin func(t *testing.T, url, name string) member

type goMember struct {
	process *os.Process
	in      io.WriteCloser
	output  chan goLine
}

type goLine struct {
	text string
	at   time.Time
}

func startGo(t *testing.T, url, name string, env ...string) *goMember {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), memberURL+"="+url, memberLock+"="+name), env...)
	cmd.Stderr = os.Stderr
	in := must(cmd.StdinPipe())(t)
	out := must(cmd.StdoutPipe())(t)
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
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
	})
	return m
}

func goKind(kind string) begin {
	return func(t *testing.T, url, name string) member {
		t.Helper()
		return startGo(t, url, name, memberKind+"="+kind)
	}
}

func (m *goMember) send(t *testing.T, what string) {
	t.Helper()
	must(fmt.Fprintln(m.in, what))(t)
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

func (m *goMember) lock(t *testing.T) { t.Helper(); m.send(t, "lock") }

func (m *goMember) locked(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	return m.expect(t, "lock <nil>", by)
}

func (m *goMember) release(t *testing.T) { t.Helper(); m.send(t, "unlock") }

func (m *goMember) released(t *testing.T) { t.Helper(); m.expect(t, "unlock <nil>", atMost) }

func (m *goMember) kill(t *testing.T) { t.Helper(); require.NoError(t, m.process.Kill()) }

type javaMember struct {
	java       *java
	kind, name string
	thread     string
	waits      peer.Command
	id         string
	call       *peer.Call
}

// javaKind returns a function that starts a Java client in the process shared or, if it is nil, in a new process.
func (c *compat) javaKind(shared *peer.Peer, kind string, waits peer.Command) begin {
	return func(t *testing.T, url, name string) member {
		t.Helper()
		p := shared
		if p == nil {
			p = peer.Start(t, c.program)
		}
		j := connectTo(t, p, url, peer.Command{"watchdog": watchdogMS})
		return &javaMember{java: j, kind: kind, name: name, waits: waits}
	}
}

func (m *javaMember) begin(c peer.Command) {
	m.call = m.java.begin(c.With(peer.Command{"name": m.name, "thread": cmp.Or(m.thread, "main")}))
}

func (m *javaMember) lock(*testing.T) { m.begin(m.takes()) }

func (m *javaMember) takes() peer.Command {
	switch m.kind {
	case withIDs: // Redisson does not renew permits
		return object(withIDs, "acquire", cmp.Or(m.waits["lease"], any(watchdogMS)), msUnit)
	case counting:
		return object(counting, "acquire", 1)
	}
	return peer.Command{"op": "lock", "kind": m.kind}.With(m.waits)
}

func (m *javaMember) releases() peer.Command {
	switch m.kind {
	case withIDs:
		return object(withIDs, "release", m.id)
	case counting:
		return object(counting, "release", 1)
	}
	return peer.Command{"op": "unlock", "kind": m.kind}
}

func (m *javaMember) locked(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	reply := must(m.call.Wait(by))(t)
	if m.kind == withIDs {
		require.NoError(t, reply.Into(&m.id))
	}
	return reply.Ended()
}

// parked waits until the thread is asleep in lock.
func (m *javaMember) parked(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return m.java.boolean(t, peer.Command{"op": "parked", "thread": cmp.Or(m.thread, "main")})
	}, atMost, time.Millisecond)
}

func (m *javaMember) release(*testing.T) { m.begin(m.releases()) }

func (m *javaMember) released(t *testing.T) {
	t.Helper()
	must(m.call.Wait(atMost))(t)
}

func (m *javaMember) kill(t *testing.T) { t.Helper(); m.java.peer.Halt() }

type goSide struct {
	client     *redlatch.Client
	kind, name string
	waiter     goWaiter[func() error]
	end        func() error
}

func (g *goSide) lock(t *testing.T) {
	t.Helper()
	g.waiter = getLater(func() (func() error, error) { return take(t.Context(), g.client, g.kind, g.name, 0) })
}

func (g *goSide) locked(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	got := g.waiter.await(t, by)
	g.end = got.value
	return got.at
}

func (g *goSide) release(t *testing.T) { t.Helper(); require.NoError(t, g.end()) }

func (g *goSide) released(*testing.T) {}

func (g *goSide) kill(t *testing.T) { t.Helper(); require.FailNow(t, "it lives in this process") }
