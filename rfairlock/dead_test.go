package rfairlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// evictions are those that were reported to a client.
type evictions struct {
	mu  sync.Mutex // guards all
	all []redlatch.Evicted
}

func (ev *evictions) observer() redlatch.Observer {
	return redlatch.Observer{Evicted: func(e redlatch.Evicted) {
		ev.mu.Lock()
		defer ev.mu.Unlock()
		ev.all = append(ev.all, e)
	}}
}

func (ev *evictions) reported() []redlatch.Evicted {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	return append([]redlatch.Evicted(nil), ev.all...)
}

// deadNative returns an owner of a client of this library that is no more.
func deadNative(t *testing.T, n int64) string {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	return redlatch.NewOwner(id, n).String()
}

// A client that dies leaves its places behind; their deadlines are far away.
func TestU13DeadWaitersOfThisLibraryAreEvictedSoon(t *testing.T) {
	testlevel.All(t, "several processes, 15 s")
	t.Parallel()
	s := redistest.Shared(t)
	ev := &evictions{}
	l := rfairlock.New(connect(t, s.URL(), redlatch.WithObserver(ev.observer())), redistest.Key(t))
	hold := take(t, l, rlock.WithLease(time.Hour))
	deadline := time.Now().Add(2 * time.Hour)
	var dead []string
	for i := range 50 {
		dead = append(dead, deadNative(t, int64(i)))
		queueByHand(t, s, l.Name(), dead[i], deadline.Add(time.Duration(i)*300*time.Second))
	}
	w := await(t.Context(), l)
	awaitQueue(t, s, l.Name(), 51)
	require.NoError(t, hold.Unlock())
	w.acquired(t, 25*time.Second)
	until(t, soon, "all are reported", func() bool { return len(ev.reported()) == len(dead) }) // the lock may come first
	var reported []string
	for _, e := range ev.reported() {
		require.Equal(t, l.Name(), e.Name)
		require.True(t, e.IsRedlatch, fmt.Sprint(e))
		reported = append(reported, e.Owner)
	}
	require.Equal(t, dead, reported)
}
