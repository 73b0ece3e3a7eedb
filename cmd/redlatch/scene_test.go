package main

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/label"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// goID is the id of the scene's client of Redlatch.
var goID = uuid.MustParse("0193e6c0-6f00-7000-8000-0000000000aa")

// scene is a server with locks of a client of Redlatch and of one of Redisson.
type scene struct {
	exhibition *exhibition
	server     *redistest.Server
	client     *redlatch.Client
	evicted    atomic.Int64 // how many waiters the client has taken out by itself
	java       *javaClient
	ids        []string // of Java's clients
}

// newScene makes clients of both kinds. Java's process may be that of other scenes.
func newScene(t *testing.T, e *exhibition, p *peer.Peer) *scene {
	t.Helper()
	s := &scene{exhibition: e, server: redistest.Start(t)}
	var err error
	s.client, err = redlatch.Open(t.Context(), s.server.URL(), redlatch.WithClientID(goID),
		redlatch.WithLabel(program.LabelText), redlatch.WithObserver(s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.client.Close()) })
	s.java = s.newJava(t, p, nil)
	return s
}

// Observe is part of redlatch.Observer.
func (s *scene) Observe(event redlatch.Event) {
	if _, is := event.(redlatch.Evicted); is {
		s.evicted.Add(1)
	}
}

// newJava makes one more client of Redisson, with settings.
func (s *scene) newJava(t *testing.T, p *peer.Peer, settings peer.Command) *javaClient {
	t.Helper()
	j := newJavaClient(t, p, s.server, settings)
	s.ids = append(s.ids, j.id)
	return j
}

// furnish makes locks of all kinds:
//
//	orders:42       plain, Redlatch's, entered twice, renewed
//	nightly-report  plain, Java's, for an hour
//	billing-run     fair, Java's, for an hour; Redlatch is queued
//	stuck           fair, free; a dead thread of Java is queued
//	a-name-…        plain, somebody's, for ever
//	books           a read lock of two
//
// and keys that are no locks.
func (s *scene) furnish(t *testing.T) {
	t.Helper()
	hold, err := rlock.New(s.client, "orders:42").Lock(t.Context())
	require.NoError(t, err)
	_, err = rlock.New(s.client, "orders:42").Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	s.java.lock(t, "plain", "nightly-report", time.Hour)
	s.java.lock(t, "fair", "billing-run", time.Hour)
	s.queue(t, "billing-run")
	program.Enqueue(t, s.server, "stuck", s.java.id+":57", time.Hour)
	s.server.Do(t, "HSET", "a-name-that-is-longer-than-its-column:2026-11", "unheard-of:1", 1)
	s.server.Do(t, "DEL", "a-name-that-is-longer-than-its-column:2026-11")
	s.server.Do(t, "HSET", "a-name-that-is-longer-than-its-column:2026-11", s.java.id+":58", 1)
	s.server.Do(t, "HSET", "books", "mode", "read", s.java.id+":57", 1, s.java.id+":58", 2)
	s.server.Do(t, "HSET", "user:1", "name", "Ada")
	s.server.Do(t, "SET", "counter", 1)
	require.Eventually(t, func() bool {
		return s.server.Do(t, "EXISTS", label.Key(goID)) == int64(1)
	}, program.Soon, 10*time.Millisecond)
}

// queue makes Redlatch's client wait for a fair lock until the test ends.
func (s *scene) queue(t *testing.T, name string) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		// The end of the test ends it, or it gets the lock.
		_, _ = rfairlock.New(s.client, name).Lock(t.Context())
	}()
	t.Cleanup(func() { <-over }) // before the client is closed
	require.Eventually(t, func() bool {
		return s.server.Do(t, "LLEN", codec.QueueKey(name)) == int64(1)
	}, program.Soon, 10*time.Millisecond)
}
