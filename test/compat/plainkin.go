package compat

import (
	"os"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// spinPoll is the poll cap of a waiter of ours behind a spin lock. The client's is [objectPoll].
const spinPoll = 200 * time.Millisecond

// testPlainKin runs the kinds of Redisson's that are a plain lock on the server. Its tests are
// among those of behaviour, which mostly wait.
func (c *compat) testPlainKin(t *testing.T) {
	t.Helper()
	t.Run("a spin lock of Java's frees without a message", c.testSpinFrees)
	t.Run("a spin lock of Java's waits for ours", c.testSpinWaits)
	t.Run("a non-reentrant lock of Java's and ours", c.testNonReentrant)
	t.Run("a non-reentrant fair lock of Java's and ours", c.testNonReentrantFair)
}

// kinPair is a pair whose clients wait longer than wakeBound unless they are woken.
func (c *compat) kinPair(t *testing.T) *pair {
	t.Helper()
	s, name := redistest.Shared(t), redistest.Key(t)
	client := open(t, s, redlatch.WithPollCap(objectPoll))
	return &pair{c, s, connect(t, c.peer, s, nil), client, name, rlock.New(client, name)}
}

func (c *compat) testSpinFrees(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.kinPair(t)
	spin := peer.Command{"kind": "spin", "thread": "main"}
	p.does(t, "lock", spin)
	require.True(t, p.truth(t, "tryLock", spin), "it is entered again")
	_, err := p.lock.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	p.does(t, "unlock", spin)

	w := lockLater(t, p.lock, rlock.WithPollCap(spinPoll))
	awaitListeners(t, p.server, p.name, 1)
	messages := p.messages(t)
	time.Sleep(settle)
	require.Empty(t, w.outcome, "Java holds it still")
	freed := time.Now()
	p.does(t, "unlock", spin)
	got := w.await(t, wakeBound)
	t.Logf("Redisson %s: in %v after its release, asking every %v", c.release, got.at.Sub(freed), spinPoll)
	require.Empty(t, messages(), "a spin lock's release has sent a message")
	require.NoError(t, got.hold.Unlock())
	requireClean(t, p.server, p.name)
}

// messages listens to the lock's channel from now on. What it returns returns what came.
func (p *pair) messages(t *testing.T) func() []string {
	t.Helper()
	conn := redis.PubSubConn{Conn: p.server.Dial(t)}
	require.NoError(t, conn.Subscribe(codec.LockChannel(p.name)))
	require.IsType(t, redis.Subscription{}, conn.Receive())
	return func() (all []string) {
		for {
			switch m := conn.ReceiveWithTimeout(settle).(type) {
			case redis.Message:
				all = append(all, string(m.Data))
			case error:
				require.ErrorIs(t, m, os.ErrDeadlineExceeded)
				_ = conn.Close() // the timeout has ended it already
				return all
			}
		}
	}
}

func (c *compat) testSpinWaits(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	p := c.kinPair(t)
	spin := peer.Command{"kind": "spin", "thread": "main"}
	hold, err := p.lock.Lock(t.Context())
	require.NoError(t, err)
	require.False(t, p.truth(t, "tryLock", spin))
	waiter := p.begin("lock", spin)
	require.Zero(t, doneAfter(settle, waiter), "Java took a lock that we hold")
	require.NoError(t, hold.Unlock())
	_, err = waiter.Wait(wakeBound)
	require.NoError(t, err, "Java does not get in")
	_, err = p.lock.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	p.does(t, "unlock", spin)
	requireClean(t, p.server, p.name)
}

func (c *compat) testNonReentrant(t *testing.T) {
	if !c.release.HasNonReentrant() {
		t.Skip("it has no non-reentrant lock")
	}
	c.ownLine(t)
	t.Parallel()
	p := c.kinPair(t)
	kind := peer.Command{"kind": "nonReentrant", "thread": "main"}
	hold, err := p.lock.Lock(t.Context())
	require.NoError(t, err)
	require.False(t, p.truth(t, "tryLock", kind))
	waiter := p.begin("lock", kind)
	awaitListeners(t, p.server, p.name, 1)
	time.Sleep(settle)
	require.NoError(t, hold.Unlock())
	_, err = waiter.Wait(wakeBound)
	require.NoError(t, err, "Java was not woken")

	p.java.throws(t, "IllegalMonitorStateException", kind.With(peer.Command{"op": "tryLock", "name": p.name}))
	w := lockLater(t, p.lock)
	awaitListeners(t, p.server, p.name, 1)
	time.Sleep(settle)
	require.Empty(t, w.outcome, "Java holds it still")
	p.does(t, "unlock", kind)
	require.NoError(t, w.await(t, wakeBound).hold.Unlock())
	requireClean(t, p.server, p.name)
}

func (c *compat) testNonReentrantFair(t *testing.T) {
	if !c.release.HasNonReentrant() {
		t.Skip("it has no non-reentrant fair lock")
	}
	c.ownLine(t)
	t.Parallel()
	p := c.kinPair(t)
	lock := rfairlock.New(p.client, p.name)
	kind := peer.Command{"kind": "nonReentrantFair", "thread": "main"}
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	theirs := p.begin("lock", kind)
	p.queued(t, p.name, 1)
	ours := lockLater(t, lock)
	p.queued(t, p.name, 2)
	require.NoError(t, hold.Unlock())
	_, err = theirs.Wait(wakeBound)
	require.NoError(t, err, "it is the first in the queue")
	require.Empty(t, ours.outcome, "we have overtaken Java")
	p.java.throws(t, "IllegalMonitorStateException", kind.With(peer.Command{"op": "tryLock", "name": p.name}))
	p.does(t, "unlock", kind)
	require.NoError(t, ours.await(t, wakeBound).hold.Unlock())
	requireClean(t, p.server, p.name)
}
