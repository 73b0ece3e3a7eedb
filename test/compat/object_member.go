package compat

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// memberPermit is in the environment of a Go process that takes a permit of a semaphore, as
// others take a lock: the kind of the semaphore, in the words of the Java peer.
const memberPermit = "REDLATCH_TEST_MEMBER_PERMIT"

// The kinds of semaphores.
const (
	withIDs  = "permits"
	counting = "semaphore"
)

// permitLoop is what the process does: a command a line, and its outcome a line.
func permitLoop(url string, commands <-chan string) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	if err != nil {
		return err
	}
	acquire := permitsOf(client, os.Getenv(memberPermit), os.Getenv(memberLock))
	var release func() error
	for what := range commands {
		var err error
		if what == "lock" {
			release, err = acquire(ctx, 1)
		} else {
			err = release()
		}
		fmt.Println(what, err)
	}
	return nil
}

// permitsOf returns how permits of a semaphore of either kind are taken, and given back.
func permitsOf(client *redlatch.Client, kind, name string) func(ctx context.Context, n int, opts ...rsemaphore.AcquireOption) (func() error, error) {
	if kind == counting {
		counter := rsemaphore.New(client, name)
		return func(ctx context.Context, n int, _ ...rsemaphore.AcquireOption) (func() error, error) {
			return func() error { return counter.Release(context.WithoutCancel(ctx), n) }, counter.Acquire(ctx, n)
		}
	}
	permits := rsemaphore.NewExpirable(client, name)
	return func(ctx context.Context, n int, opts ...rsemaphore.AcquireOption) (func() error, error) {
		hold, err := permits.Acquire(ctx, n, opts...)
		if err != nil {
			return nil, err
		}
		return hold.Release, nil
	}
}

// releaser is a member that can begin to give back what it has.
type releaser interface {
	member
	// releases begins it, and does not wait for its end.
	releases(t *testing.T)
}

// beginPermit begins to take permits of a semaphore.
type beginPermit func(t *testing.T, url, name string) releaser

func startGoPermit(kind string) beginPermit {
	return func(t *testing.T, url, name string) releaser {
		t.Helper()
		m, ok := startGo(t, url, name, memberPermit+"="+kind).(*goMember)
		require.True(t, ok)
		return goPermit{m}
	}
}

// goPermit is a Go process that takes a permit.
type goPermit struct{ *goMember }

func (m goPermit) releases(t *testing.T) {
	t.Helper()
	m.send(t, "unlock")
}

// javaPermit is a Redisson client that takes a permit, one with an id with a lease, which it does
// not renew.
type javaPermit struct {
	javaMember
	semaphore string // its kind
	lease     time.Duration
	id        string
}

// startJavaPermit returns how to start clients of a process, or of a new one each, that take
// permits of a kind of semaphore for so long.
func (c *compat) startJavaPermit(shared *peer.Peer, kind string, lease time.Duration) beginPermit {
	return func(t *testing.T, url, name string) releaser {
		t.Helper()
		p := shared
		if p == nil {
			p = peertest.Start(t, c.program)
		}
		return &javaPermit{javaMember{java: connectTo(t, p, url, nil), name: name}, kind, lease, ""}
	}
}

func (m *javaPermit) lock(*testing.T) {
	call := object(withIDs, "acquire", m.lease.Milliseconds(), msUnit)
	if m.semaphore == counting {
		call = object(counting, "acquire", 1)
	}
	m.call = m.java.begin(call.With(peer.Command{"name": m.name}))
}

func (m *javaPermit) locked(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	reply, err := m.call.Wait(by)
	require.NoError(t, err)
	if m.semaphore == withIDs {
		require.NoError(t, reply.Into(&m.id))
	}
	return reply.Ended()
}

func (m *javaPermit) unlock(t *testing.T) {
	t.Helper()
	m.releases(t)
	_, err := m.call.Wait(atMost)
	require.NoError(t, err)
}

func (m *javaPermit) releases(*testing.T) {
	call := object(withIDs, "release", m.id)
	if m.semaphore == counting {
		call = object(counting, "release", 1)
	}
	m.call = m.java.begin(call.With(peer.Command{"name": m.name}))
}
