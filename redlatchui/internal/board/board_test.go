package board

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// boardOf returns a board for the locks of a server.
func boardOf(t *testing.T, address string) *Board {
	t.Helper()
	client, err := redlatch.Open(t.Context(), address)
	require.NoError(t, err)
	source, err := FromClient(client)
	require.NoError(t, err)
	b := New(Config{Source: source, Every: LeastEvery})
	t.Cleanup(func() {
		require.NoError(t, b.Close())
		require.NoError(t, client.Close())
	})
	return b
}

// first returns the first value that a viewer sees.
func first[T any](t *testing.T, view *View[T], err error) *T {
	t.Helper()
	require.NoError(t, err)
	defer view.Close()
	value, _ := view.Get(t.Context())
	return value
}

// stopped waits until a feed has stopped.
func stopped[T any](t *testing.T, f *feed[T]) {
	t.Helper()
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.running
	}, time.Minute, 10*time.Millisecond)
}

// A server stands still when viewers come back: they see what was seen last, and that it is old.
func TestWhatWasSeenOfALockIsShownWhenTheServerStandsStill(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "a", program.SomeOwner, 1)
	b := boardOf(t, s.URL())
	all, err := b.Locks()
	first(t, all, err)
	lock, err := b.Lock("a", "")
	seen := first(t, lock, err)
	stopped(t, &b.locks)
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.watched) == 0
	}, time.Minute, 10*time.Millisecond)
	s.Pause()
	defer s.Resume()
	lock, err = b.Lock("a", "")
	l := first(t, lock, err)
	require.Equal(t, seen.Holders, l.Holders)
	require.True(t, l.Old(time.Now().Add(overdue)), "it was seen a moment ago")
	all, err = b.Locks()
	require.Equal(t, "a", first(t, all, err).Entries[0].Name)
}

// What was known when the last viewer left is known to the next one, at the first answer.
func TestTheFirstAnswerAfterAPauseHasWhatWasKnown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "a", program.SomeOwner, 1)
	s.Do(t, "PEXPIRE", "a", 600_000)
	program.Enqueue(t, s, "a", program.RedissonOwner, time.Hour)
	b := boardOf(t, s.URL())
	began := time.Now()
	view, err := b.Locks()
	all := first(t, view, err)
	require.Equal(t, DeadFront, all.Entries[0].Trouble, "it is what two scans have found")
	took := time.Since(began)
	b.mu.Lock()
	require.Empty(t, b.watched)
	b.mu.Unlock()
	// The page of the lock knows what scans have found, at once.
	began = time.Now()
	lock, err := b.Lock("a", "")
	l := first(t, lock, err)
	require.Less(t, time.Since(began), absentFor)
	require.Equal(t, all.Entries[0].Age, l.Age)
	require.Equal(t, Dead, l.Queue[0].State)

	stopped(t, &b.locks)
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.watched) == 0
	}, time.Minute, 10*time.Millisecond)
	time.Sleep(1500 * time.Millisecond) // a pause is what this is about
	began = time.Now()
	view, err = b.Locks()
	again := first(t, view, err)
	require.Less(t, time.Since(began), min(took, absentFor), "one scan will do")
	require.Equal(t, DeadFront, again.Entries[0].Trouble)
	require.Equal(t, all.Entries[0].Age, again.Entries[0].Age)
	require.True(t, again.At.After(all.At))
	lock, err = b.Lock("a", "")
	later := first(t, lock, err)
	require.Equal(t, l.Age, later.Age)
	require.Equal(t, Dead, later.Queue[0].State)
	require.Equal(t, l.Lease, later.Lease)
	require.Len(t, l.Events, 1)
	require.Equal(t, l.Events, later.Events, "that it is held is said once")
}

// The first look at a lock tells which waiters are dead, too.
func TestTheFirstAnswerAboutALockSaysThatAWaiterIsDead(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	program.Enqueue(t, s, "a", program.RedissonOwner, time.Hour)
	lock, err := boardOf(t, s.URL()).Lock("a", "")
	require.Equal(t, Dead, first(t, lock, err).Queue[0].State)
}

// Of all queues it is known at the first answer whether the first waiter is dead, whatever bytes
// their names have.
func TestTheFirstAnswerHasAllDeadWaiters(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range 3 * nodeFronts {
		program.Enqueue(t, s, fmt.Sprint("lock\xff", i), program.RedissonOwner, time.Hour)
	}
	view, err := boardOf(t, s.URL()).Locks()
	all := first(t, view, err)
	require.Len(t, all.Entries, 3*nodeFronts)
	require.Empty(t, all.Uncounted)
	for i := range all.Entries {
		require.Equal(t, DeadFront, all.Entries[i].Trouble, all.Entries[i].Name)
	}
}
