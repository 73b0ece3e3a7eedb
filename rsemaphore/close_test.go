package rsemaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// The reply of an attempt comes while Close waits for it: the permits have no lease, so they
// would be away for ever.
func TestPermitsThatAreGrantedAsTheClientClosesAreGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for range 10 {
		sem := newCounter(t, s, 3)
		p := redistest.NewProxy(t, s.Addr())
		client := connect(t, p.URL(), redlatch.WithCommandTimeout(soon))
		far := rsemaphore.New(client, sem.Name())
		loaded(t, far)
		p.Blackhole(redistest.ToClient)
		came := taking(t.Context(), far, 2)
		require.Eventually(t, func() bool { n, _ := sem.Available(within(t)); return n == 1 }, soon, time.Millisecond)
		closed := make(chan error, 1)
		go func() { closed <- client.Close() }()
		require.ErrorIs(t, <-came, redlatch.ErrClosed)
		p.Heal()
		require.NoError(t, <-closed)
		available(t, sem, 3)
	}
}

// The server turns the giving back away before it runs, as one that has just lost its replicas,
// was demoted or has no memory does.
func TestPermitsOfALateReplyAreGivenBackAlsoWhenTheServerIsNotReady(t *testing.T) {
	t.Parallel()
	for _, refuses := range []string{"min-replicas-to-write", "maxmemory"} {
		t.Run(refuses, func(t *testing.T) {
			t.Parallel()
			givesBackLate(t, refuses)
		})
	}
}

func givesBackLate(t *testing.T, refuses string) {
	t.Helper()
	s := redistest.Start(t)
	sem := newCounter(t, s, 3)
	p := redistest.NewProxy(t, s.Addr())
	far := rsemaphore.New(connect(t, p.URL(), redlatch.WithCommandTimeout(soon)), sem.Name())
	loaded(t, far)
	p.Blackhole(redistest.ToClient)
	ctx, cancel := context.WithCancel(t.Context())
	came := taking(ctx, far, 2)
	require.Eventually(t, func() bool { n, _ := sem.Available(within(t)); return n == 1 }, soon, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-came, redlatch.ErrUncertain)
	s.Do(t, "CONFIG", "SET", refuses, 1)
	p.Heal()
	time.Sleep(200 * time.Millisecond)
	s.Do(t, "CONFIG", "SET", refuses, 0)
	require.Eventually(t, func() bool { n, _ := sem.Available(within(t)); return n == 3 }, soon, 5*time.Millisecond)
}
