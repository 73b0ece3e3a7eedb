package breakable

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// StopAnswering checks that calls end when a server says nothing, whatever the client that tr is
// over would wait for. The reply limit and the dial timeout of tr are a second; it leads
// through the proxy, and is closed.
func StopAnswering(t *testing.T, proxy *redistest.Proxy, tr transport.Transport) {
	t.Helper()
	key := redistest.Key(t)
	require.Eventually(t, func() bool { return run(tr, "INCR", key) == nil }, 10*time.Second, 10*time.Millisecond, "it connects")
	proxy.Blackhole()
	began := time.Now()
	require.ErrorIs(t, run(tr, "INCR", key), transport.ErrUncertain)
	require.ErrorIs(t, run(tr, "INCR", key), transport.ErrNotSent)
	require.Less(t, time.Since(began), 10*time.Second)
	began = time.Now()
	require.NoError(t, tr.Close())
	require.Less(t, time.Since(began), 5*time.Second, "Close waits for the client to let go")
	proxy.Heal()
}
