package locksuite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// LeavesInTime takes a lock while commands run and no reply comes back, from hush until
// speak, which breaks the connections, too: Lock returns when its context ends, without
// the lock; the acquire has run once and no more; and what it took is given back.
func (d Deployment) LeavesInTime(t *testing.T, hush, speak func()) {
	t.Helper()
	const deadline = 2 * time.Second
	for _, kind := range Kinds {
		s := suite{Deployment: d, kind: kind}
		l := s.lock(t)
		hold, err := l.Lock(within(t)) // the server knows the script, and the transport is connected
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
		hush()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		came, began := lockLater(ctx, l), time.Now()
		require.Eventually(t, func() bool {
			counts, _ := s.Do(t, l.Name(), "HVALS", l.Name()).([]any)
			return len(counts) == 1 && assert.Equal(t, []byte("1"), counts[0], "the acquire ran once")
		}, deadline+wakeBound, time.Millisecond, "%s: it never ran", kind.Name)
		got := <-came
		cancel()
		require.ErrorIs(t, got.err, context.DeadlineExceeded, kind.Name)
		assert.Less(t, time.Since(began), deadline+wakeBound, "it overran its deadline")
		speak()
		s.free(t, l.Name())
		hold, err = l.Lock(within(t))
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
	}
}
