package main

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// goID is the id of the fixture's client of Redlatch.
var goID = uuid.MustParse("0193e6c0-6f00-7000-8000-0000000000aa")

// fixture is a server with locks of a client of Redlatch and of one of Redisson.
type fixture struct {
	coverage *coverage
	server   *redistest.Server
	client   *redlatch.Client
	evicted  atomic.Int64 // how many waiters the client has taken out by itself
	java     *javaClient
	ids      []string // of Java's clients
}

// newFixture makes clients of both kinds. Java's process may be that of other scenes.
func newFixture(t *testing.T, e *coverage, p *peer.Peer) *fixture {
	t.Helper()
	f := &fixture{coverage: e, server: redistest.Start(t)}
	var err error
	f.client, err = redlatch.Open(t.Context(), f.server.URL(), redlatch.WithClientID(goID),
		redlatch.WithLabel(program.LabelText), redlatch.WithDeadWaiterGrace(time.Minute), redlatch.WithObserver(redlatch.Observer{Evicted: func(redlatch.Evicted) { f.evicted.Add(1) }}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.client.Close()) })
	f.java = f.newJava(t, p, nil)
	return f
}

// newJava makes one more client of Redisson, with settings.
func (f *fixture) newJava(t *testing.T, p *peer.Peer, settings peer.Command) *javaClient {
	t.Helper()
	j := newJavaClient(t, p, f.server, settings)
	f.ids = append(f.ids, j.id)
	return j
}

// addLocks makes locks of all kinds:
//
//	orders:42       plain, Redlatch's, entered twice, renewed
//	nightly-report  plain, Java's, for an hour
//	billing-run     fair, Java's, for an hour; Redlatch is queued
//	stuck           fair, free; a dead thread of Java is queued
//	a-name-…        plain, of another owner, without a lease
//	books           a read lock of two
//
// and keys that are no locks.
func (f *fixture) addLocks(t *testing.T) {
	t.Helper()
	hold, err := rlock.New(f.client, "orders:42").Lock(t.Context())
	require.NoError(t, err)
	_, err = rlock.New(f.client, "orders:42").Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	f.java.lock(t, "plain", "nightly-report", time.Hour)
	f.java.lock(t, "fair", "billing-run", time.Hour)
	f.queue(t, "billing-run")
	program.Enqueue(t, f.server, "stuck", f.java.id+":57", time.Hour)
	f.server.Do(t, "HSET", "a-name-that-is-longer-than-its-column:2026-11", "unheard-of:1", 1)
	f.server.Do(t, "DEL", "a-name-that-is-longer-than-its-column:2026-11")
	f.server.Do(t, "HSET", "a-name-that-is-longer-than-its-column:2026-11", f.java.id+":58", 1)
	f.server.Do(t, "HSET", "books", "mode", "read", f.java.id+":57", 1, f.java.id+":58", 2)
	f.server.Do(t, "HSET", "user:1", "name", "Ada")
	f.server.Do(t, "SET", "counter", 1)
	require.Eventually(t, func() bool {
		return f.server.Do(t, "EXISTS", engine.LabelKey(goID)) == int64(1)
	}, program.Soon, 10*time.Millisecond)
}

// queue makes Redlatch's client wait for a fair lock until the test ends.
func (f *fixture) queue(t *testing.T, name string) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		// The end of the test ends it, or it gets the lock.
		_, _ = rfairlock.New(f.client, name).Lock(t.Context())
	}()
	t.Cleanup(func() { <-over }) // before the client is closed
	require.Eventually(t, func() bool {
		return f.server.Do(t, "LLEN", codec.QueueKey(name)) == int64(1)
	}, program.Soon, 10*time.Millisecond)
}
