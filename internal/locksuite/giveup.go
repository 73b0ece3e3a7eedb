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
	const deadline = 500 * time.Millisecond
	for _, kind := range Kinds {
		s := suite{Deployment: d, kind: kind}
		l := s.lock(t)
		take(t, kind, d.Client(t), l.Name()) // the server knows the scripts
		hold, err := l.TryLock(within(t))    // and the transport is connected
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
		hush()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		began := time.Now()
		_, err = l.Lock(ctx)
		took := time.Since(began)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, kind.Name)
		assert.Less(t, took, deadline+wakes, "it overran its deadline")
		assert.Equal(t, []any{[]byte("1")}, s.Do(t, l.Name(), "HVALS", l.Name()), "the acquire ran once")
		speak()
		s.free(t, l.Name())
		hold, err = l.Lock(within(t))
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
	}
}
