package leader_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/leader"
	"github.com/redlatch/redlatch/rlock"
)

// The context ends while the server has granted the lock, and its reply is on the way.
func TestACandidateThatStopsInDoubtSaysThatTheLockMayNotBeFree(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	client := connect(t, proxy.URL())
	h, err := rlock.New(client, "job").Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Unlock())
	proxy.Blackhole(redistest.ToClient)
	c := run(t, client, "job", leader.Config{})
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", "job") == int64(1) }, 10*time.Second, time.Millisecond)
	c.stop()
	err = receive(t, c.ended)
	require.EqualValues(t, 1, s.Do(t, "EXISTS", "job"))
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	proxy.Heal()
}
