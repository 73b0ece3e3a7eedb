package compat

import (
	"bufio"
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
// others take a lock.
const memberPermit = "REDLATCH_TEST_MEMBER_PERMIT"

// permitLoop is what the process does: a command a line, and its outcome a line.
func permitLoop(url string) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url, redlatch.WithWatchdogTimeout(watchdogMS*time.Millisecond))
	if err != nil {
		return err
	}
	permits := rsemaphore.NewExpirable(client, os.Getenv(memberLock))
	var hold *rsemaphore.Hold
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var err error
		if in.Text() == "lock" {
			hold, err = permits.Acquire(ctx, 1)
		} else {
			err = hold.Release()
		}
		fmt.Println(in.Text(), err)
	}
	return nil
}

// releaser is a member that can begin to give back what it has.
type releaser interface {
	member
	// releases begins it, and does not wait for its end.
	releases(t *testing.T)
}

// beginPermit begins to take permits of a semaphore.
type beginPermit func(t *testing.T, url, name string) releaser

func startGoPermit(t *testing.T, url, name string) releaser {
	t.Helper()
	m, ok := startGo(t, url, name, memberPermit+"=yes").(*goMember)
	require.True(t, ok)
	return goPermit{m}
}

// goPermit is a Go process that takes a permit.
type goPermit struct{ *goMember }

func (m goPermit) releases(t *testing.T) {
	t.Helper()
	m.send(t, "unlock")
}

// javaPermit is a Redisson client that takes a permit with a lease, which it does not renew.
type javaPermit struct {
	javaMember
	lease time.Duration
	id    string
}

// startJavaPermit returns how to start clients of a process, or of a new one each, that take
// permits for so long.
func (c *compat) startJavaPermit(shared *peer.Peer, lease time.Duration) beginPermit {
	return func(t *testing.T, url, name string) releaser {
		t.Helper()
		p := shared
		if p == nil {
			p = peertest.Start(t, c.program)
		}
		return &javaPermit{javaMember{java: connectTo(t, p, url, nil), name: name}, lease, ""}
	}
}

func (m *javaPermit) lock(*testing.T) {
	m.call = m.java.begin(object("permits", "acquire", m.lease.Milliseconds(), msUnit).With(peer.Command{"name": m.name}))
}

func (m *javaPermit) locked(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	reply, err := m.call.Wait(by)
	require.NoError(t, err)
	require.NoError(t, reply.Into(&m.id))
	return reply.Ended()
}

func (m *javaPermit) unlock(t *testing.T) {
	t.Helper()
	m.releases(t)
	_, err := m.call.Wait(atMost)
	require.NoError(t, err)
}

func (m *javaPermit) releases(*testing.T) {
	m.call = m.java.begin(object("permits", "release", m.id).With(peer.Command{"name": m.name}))
}
