package rfairlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// workload is many workers of some clients that take one lock in all sorts of ways.
type workload struct {
	t       *testing.T
	srv     *redistest.Server
	inside  atomic.Int64
	holds   atomic.Int64
	trouble atomic.Int64
}

// work takes the lock again and again until ctx ends.
func (s *workload) work(ctx context.Context, l *rlock.Lock) {
	for ctx.Err() == nil {
		hold, err := s.lock(ctx, l)
		if err != nil {
			s.trouble.Add(1)
			continue
		}
		s.hold(ctx, l, hold)
		if err := hold.Unlock(); err != nil {
			assert.ErrorIs(s.t, err, redlatch.ErrUncertain)
			s.trouble.Add(1)
		}
	}
}

// lock waits for as long as it takes, for a moment, or until its caller leaves.
func (s *workload) lock(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error) {
	moment := time.Duration(rand.Int64N(int64(5 * time.Millisecond)))
	switch rand.IntN(8) {
	case 0:
		return l.Lock(ctx, rlock.WithWait(time.Millisecond+moment))
	case 1:
		ctx, cancel := context.WithTimeout(ctx, moment)
		defer cancel()
		return l.Lock(ctx)
	case 2:
		return l.TryLock(ctx)
	}
	return l.Lock(ctx)
}

// hold is alone, and counted once, whatever came before.
func (s *workload) hold(ctx context.Context, l *rlock.Lock, hold *rlock.Hold) {
	assert.EqualValues(s.t, 1, s.inside.Add(1))
	s.holds.Add(1)
	fields := owners(s.t, s.srv, l.Name())
	assert.Len(s.t, fields, 1)
	for _, count := range fields {
		assert.Equal(s.t, "1", count)
	}
	switch rand.IntN(8) {
	case 0:
		assert.Contains(s.t, fields, hold.Owner().String())
	case 1:
		inner, err := l.Lock(hold.Context(ctx))
		if err == nil {
			err = inner.Unlock()
		}
		if err != nil && ctx.Err() == nil {
			s.trouble.Add(1)
			assert.True(s.t, errors.Is(err, redlatch.ErrUncertain) || errors.Is(err, redlatch.ErrNotSent), err)
		}
	}
	s.inside.Add(-1)
}

// Owners that come again meet whatever else goes on: callers that leave, replies that
// are lost, subscriptions that break.
func TestOwnersThatComeAgainExcludeEachOtherWhileConnectionsBreak(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := &workload{t: t, srv: srv}
	breaks := testlevel.Rounds(2, 12)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	name := redistest.Key(t)
	var wg sync.WaitGroup
	var proxies []*redistest.Proxy
	for range 3 {
		p := redistest.NewProxy(t, srv.Addr())
		proxies = append(proxies, p)
		l := rfairlock.New(connect(t, p.URL()), name)
		for range 5 {
			wg.Go(func() { s.work(ctx, l) })
		}
	}
	for i := range breaks {
		<-time.After(300 * time.Millisecond)
		if i%2 == 0 {
			srv.KillClients(t, "pubsub")
		} else {
			proxies[i/2%len(proxies)].Reset() // what was sent may run, and has no answer
		}
	}
	before := s.holds.Load()
	until(t, soon, "they go on after the last break", func() bool { return s.holds.Load() > max(100, before+20) })
	cancel()
	wg.Wait()
	t.Logf("%d holds, %d times trouble", s.holds.Load(), s.trouble.Load())
	requireNoTrace(t, srv, name)
}
