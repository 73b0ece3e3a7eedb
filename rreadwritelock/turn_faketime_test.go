package rreadwritelock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

// stalling is a transport to a server that may stall: what was sent runs when it goes on.
type stalling struct {
	transport.Transport

	mu     sync.Mutex
	stalls bool
	sent   []func()
}

func (s *stalling) Start(call *transport.Call, done transport.Done) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stalls {
		s.Transport.Start(call, done)
		return
	}
	call.Claim(0)
	s.sent = append(s.sent, func() { s.Transport.Start(call, done) })
}

func (s *stalling) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalls = false
	for _, start := range s.sent {
		start()
	}
	s.sent = nil
}

func (s *stalling) stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalls = true
}

// The server stalls while a writer enters its lock as a reader, and the writer gives up meanwhile.
func TestAWriterThatGivesUpWhileItEntersAsAReaderPassesItsTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		tr := &stalling{}
		client := overTransport(t, srv, func(near transport.Transport) transport.Transport {
			tr.Transport = near
			return tr
		})
		rw := rreadwritelock.New(client, "job")
		w := take(t, rw.Write(), rlock.WithLease(time.Hour))
		tr.stall()
		inner := later(w.Context(t.Context()), rw.Read())
		synctest.Wait()
		time.Sleep(time.Second)
		require.ErrorIs(t, w.Unlock(), redlatch.ErrUncertain)
		require.Error(t, (<-inner).Err)
		tr.goOn()
		time.Sleep(30 * time.Second) // all is resolved
		require.Equal(t, int64(0), srv.Do(t, "EXISTS", "job"))
		for range 3 {
			began := time.Now()
			unlock(t, take(t, rw.Write()))
			require.Zero(t, time.Since(began), "the lock is free")
		}
	})
}
