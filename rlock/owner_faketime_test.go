package rlock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// ofOneOwner returns a lock on a server whose replies take their time, and an owner for it.
func ofOneOwner(t *testing.T, srv *redistest.MiniServer) (*rlock.Lock, redlatch.Owner) {
	t.Helper()
	tr := &faketransport.Distant{Transport: redigoTransport(srv)}
	t.Cleanup(tr.Wait)
	return rlock.New(overTransport(t, tr), "job"), redlatch.NewOwner(uuid.New(), 1)
}

// requireKept requires that a hold has its lock, also a minute later.
func requireKept(t *testing.T, hold *rlock.Hold, other *redlatch.Client) {
	t.Helper()
	time.Sleep(time.Minute)
	require.NoError(t, hold.Err())
	_, err := rlock.New(other, "job").TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired, "the hold says that it has the lock")
}

// Two callers acquire for one owner at the same time, and the one that comes to the server last has
// the shorter lease.
func TestCallersOfOneOwnerDoNotShortenEachOthersLeaseWhenTheyComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := inBubble(t)
		l, owner := ofOneOwner(t, srv)
		long := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		time.Sleep(time.Millisecond)
		short := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Minute))
		hold := long.acquired(t, soon)
		short.acquired(t, soon)
		require.Greater(t, srv.Do(t, "PTTL", "job"), hold.Remaining().Milliseconds(), "what the hold counts on")
	})
}

// The shorter lease is over before its reply comes: nothing gives the longer one back what it has.
func TestACallerOfAnOwnerWhoseLeaseIsOverAtOnceTakesTheLockFromNoOtherOfItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, other := inBubble(t)
		l, owner := ofOneOwner(t, srv)
		long := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		time.Sleep(time.Millisecond)
		short := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(30*time.Millisecond))
		hold := long.acquired(t, soon)
		short.ended(t, soon)
		requireKept(t, hold, other)
	})
}

// One caller of an owner gives up while another one acquires: what the release leaves is not less
// than what the other gets.
func TestAReleaseForAnOwnerLeavesACallerThatComesInTheLeaseThatItGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, other := inBubble(t)
		l, owner := ofOneOwner(t, srv)
		first := await(t.Context(), l, rlock.WithOwner(owner)).acquired(t, soon)
		next := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		time.Sleep(time.Millisecond) // it is on its way
		require.NoError(t, first.Unlock())
		hold := next.acquired(t, soon)
		requireKept(t, hold, other)
	})
}

// lossy is a transport that loses the first release for an owner that others may use.
type lossy struct {
	transport.Transport

	once sync.Once
}

// Start is part of transport.Transport.
func (l *lossy) Start(call *transport.Call, done transport.Done) {
	lost := false
	if call.Name() == "release_shared" {
		l.once.Do(func() { lost = true })
	}
	if !lost {
		l.Transport.Start(call, done)
		return
	}
	call.Claim(0)
	done(nil, transport.ErrUncertain)
}

// A release is repeated, and another caller acquires for the owner meanwhile.
func TestAReleaseThatIsRepeatedLeavesACallerThatCameInItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, other := inBubble(t)
		client := overTransport(t, &lossy{Transport: redigoTransport(srv)})
		l, owner := rlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 1)
		first := take(t, l, rlock.WithOwner(owner))
		unlocked := make(chan error, 1)
		go func() { unlocked <- first.Unlock() }()
		synctest.Wait() // it pauses before it is sent again
		hold := take(t, l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		require.NoError(t, <-unlocked)
		requireKept(t, hold, other)
	})
}

func TestAReleaseForAnOwnerLeavesACallerThatResumesTheLeaseThatItGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, other := inBubble(t)
		l, owner := ofOneOwner(t, srv)
		first := await(t.Context(), l, rlock.WithOwner(owner)).acquired(t, soon)
		srv.Do(t, "HINCRBY", "job", owner.String(), 1) // another process has acquired for it, too
		resumed := make(chan *rlock.Hold, 1)
		go func() {
			h, err := l.Resume(t.Context(), owner, rlock.WithLease(time.Hour))
			assert.NoError(t, err)
			resumed <- h
		}()
		time.Sleep(time.Millisecond) // it is on its way
		require.NoError(t, first.Unlock())
		hold := <-resumed
		requireKept(t, hold, other)
	})
}
