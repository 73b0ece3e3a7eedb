package fairqueue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/faketransport"
)

// fakeServer is a transport to a server with a queue that the test controls.
type fakeServer struct {
	*faketransport.Fake
	queues *Queues
	log    *faketransport.Log
	place  *caller // of a waiter called mine

	mu          sync.Mutex // guards what follows
	reconnected chan struct{}
	left        int64
	queue       []string
	behind      int64 // number of further waiters
	missing     []string
	listeners   map[string]int64
	refusal     error            // of counting
	outage      error            // of everything else
	mute        bool             // counts are not answered
	garbled     bool             // all replies are malformed
	args        map[string][]any // of the last call of each name
}

// beating returns a server whose queue contains three dead owners from other processes and a waiter from this one.
func beating(t *testing.T, grace time.Duration) *fakeServer {
	t.Helper()
	s := &fakeServer{
		Fake: &faketransport.Fake{}, reconnected: make(chan struct{}), left: 60_000,
		args: map[string][]any{}, listeners: map[string]int64{"mine": 1},
	}
	s.Answer = s.script
	for range 3 {
		id, err := uuid.NewV7()
		require.NoError(t, err)
		s.queue = append(s.queue, codec.NewOwner(id, 1).String())
	}
	s.queue = append(s.queue, "mine")
	s.queues, s.log = queuesOver(t, s)
	s.queues.engine.Grace = grace
	s.place = join(s.queues, theLock, "mine")
	s.place.setSub(newFakeSub())
	t.Cleanup(s.leave)
	return s
}

func (s *fakeServer) leave() {
	if s.place != nil {
		s.place.leaveGroup()
	}
	s.place = nil
}

func (s *fakeServer) Reconnected() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reconnected
}

func (s *fakeServer) reconnect() {
	s.set(func() { close(s.reconnected); s.reconnected = make(chan struct{}) })
}

func (s *fakeServer) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mute {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return nil, ctx.Err()
	}
	var counts []int64
	for _, c := range channels {
		counts = append(counts, s.listeners[c])
	}
	return counts, s.refusal
}

func (s *fakeServer) script(c *faketransport.SentCall) (any, error, bool) { //nolint:revive // as Fake.Answer
	s.mu.Lock()
	defer s.mu.Unlock()
	s.args[c.Name] = slices.Clone(c.Call.Args)
	switch {
	case s.outage != nil:
		return nil, s.outage, true
	case s.garbled:
		return "OK", nil, true
	case c.Name == "EVICT":
		var gone []any
		for _, owner := range c.Call.Args {
			gone = append(gone, owner)
			s.queue = s.queue[1:]
		}
		return gone, nil, true
	case c.Name == "NUDGE":
		return int64(1), nil, true
	}
	var front, missing []any
	for _, owner := range s.queue {
		front = append(front, owner, "1")
	}
	for _, owner := range s.missing {
		missing = append(missing, owner)
	}
	return []any{s.left, front, missing, int64(len(s.queue)) + s.behind}, nil, true
}

func (s *fakeServer) said(name string) []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.args[name]
}

func (s *fakeServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}
