package goredis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// patient is a transport.Caller that waits.
type patient struct{}

func (patient) Started()    {}
func (patient) Waits() bool { return true }

// requireLeads holds that a caller that is alone has its reply when Lead returns.
func requireLeads(t *testing.T, tr transport.Transport) {
	t.Helper()
	defer func() { require.NoError(t, tr.Close()) }()
	l, ok := tr.(transport.Leader)
	require.True(t, ok)
	require.True(t, l.Leads(tr))
	led := 0
	for limit := time.Now().Add(20 * time.Second); led < 5 && time.Now().Before(limit); {
		came := make(chan error, 1)
		call := &transport.Call{Command: "GET", Args: []any{"lead"}, NumKeys: 1}
		l.Lead(t.Context(), call, func(_ any, err error) { came <- err }, patient{})
		led += len(came)
		require.NoError(t, <-came)
	}
	require.Equal(t, 5, led)
}

func TestCallerThatIsAloneReadsOnConnectionsOfGoRedis(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		requireLeads(t, over(t, redis.NewClient(reckless(redistest.Start(t).Addr()))))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		requireLeads(t, named(t, redistest.StartCluster(t, 3, 0), ""))
	})
	t.Run("Sentinels", func(t *testing.T) {
		t.Parallel()
		requireLeads(t, over(t, redis.NewFailoverClient(failoverOptions(redistest.StartSentinels(t, time.Minute), "", nil))))
	})
}
