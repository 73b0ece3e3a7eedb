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
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// distant is a transport to a server whose replies take their time.
type distant struct {
	transport.Transport

	replies sync.WaitGroup
}

// Start is part of transport.Transport.
func (d *distant) Start(call *transport.Call, done transport.Done) {
	d.Transport.Start(call, func(reply any, err error) {
		d.replies.Go(func() {
			time.Sleep(50 * time.Millisecond)
			done(reply, err)
		})
	})
}

// Two callers acquire for one owner at the same time, and the one that comes to the server last has
// the shorter lease.
func TestCallersOfOneOwnerDoNotShortenEachOthersLeaseWhenTheyComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := inBubble(t)
		tr := &distant{Transport: redigoTransport(srv)}
		client, err := redlatch.NewWithTransport(tr)
		require.NoError(t, err)
		defer tr.replies.Wait()
		defer func() { require.NoError(t, client.Close()) }()
		l, owner := rlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 1)
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
		tr := &distant{Transport: redigoTransport(srv)}
		client, err := redlatch.NewWithTransport(tr)
		require.NoError(t, err)
		defer tr.replies.Wait()
		defer func() { require.NoError(t, client.Close()) }()
		l, owner := rlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 1)
		long := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		time.Sleep(time.Millisecond)
		short := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(30*time.Millisecond))
		hold := long.acquired(t, soon)
		short.ended(t, soon)
		time.Sleep(time.Second)
		require.NoError(t, hold.Err())
		_, err = rlock.New(other, "job").TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, "the hold says that it has the lock")
	})
}

// One caller of an owner gives up while another one acquires: what the release leaves is not less
// than what the other gets.
func TestAReleaseForAnOwnerLeavesACallerThatComesInTheLeaseThatItGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, other := inBubble(t)
		tr := &distant{Transport: redigoTransport(srv)}
		client, err := redlatch.NewWithTransport(tr)
		require.NoError(t, err)
		defer tr.replies.Wait()
		defer func() { require.NoError(t, client.Close()) }()
		l, owner := rlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 1)
		first := await(t.Context(), l, rlock.WithOwner(owner)).acquired(t, soon)
		next := await(t.Context(), l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		time.Sleep(time.Millisecond) // it is on its way
		require.NoError(t, first.Unlock())
		hold := next.acquired(t, soon)
		time.Sleep(time.Minute)
		require.NoError(t, hold.Err())
		_, err = rlock.New(other, "job").TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, "the hold says that it has the lock")
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
		client, err := redlatch.NewWithTransport(&lossy{Transport: redigoTransport(srv)})
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		l, owner := rlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 1)
		first := take(t, l, rlock.WithOwner(owner))
		unlocked := make(chan error, 1)
		go func() { unlocked <- first.Unlock() }()
		synctest.Wait() // it pauses before it is sent again
		hold := take(t, l, rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		require.NoError(t, <-unlocked)
		time.Sleep(time.Minute)
		require.NoError(t, hold.Err())
		_, err = rlock.New(other, "job").TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, "the hold says that it has the lock")
	})
}

func TestAReleaseForAnOwnerLeavesACallerThatResumesTheLeaseThatItGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, other := inBubble(t)
		tr := &distant{Transport: redigoTransport(srv)}
		client, err := redlatch.NewWithTransport(tr)
		require.NoError(t, err)
		defer tr.replies.Wait()
		defer func() { require.NoError(t, client.Close()) }()
		l, owner := rlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 1)
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
		time.Sleep(time.Minute)
		require.NoError(t, hold.Err())
		_, err = rlock.New(other, "job").TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired, "the hold says that it has the lock")
	})
}
