package hold

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// A machine that was suspended, or whose clock was set, ends a hold at --max-hold long before the
// timer of --at-least.
func TestASignalEndsTheRestOfAtLeastAlsoAfterMaxHold(t *testing.T) {
	t.Parallel()
	client, err := redlatch.Open(t.Context(), redistest.Start(t).URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	lock := rlock.New(client, "job")
	hold, err := lock.Lock(t.Context(), rlock.WithMaxHold(2*time.Second))
	require.NoError(t, err)
	h := &acquired{hold: hold, lock: lock, since: time.Now(), client: client}
	signals, came := make(chan os.Signal), make(chan error, 1)
	go func() { came <- (&lockFlags{}).await(t.Context(), h, time.Hour, signals) }()
	<-hold.Context(t.Context()).Done()
	time.Sleep(100 * time.Millisecond) // until that was seen
	select {
	case signals <- os.Interrupt:
		require.ErrorIs(t, <-came, redlatch.ErrMaxHold)
	case <-time.After(10 * time.Second):
		require.Fail(t, "signals are not heeded")
	}
}

func TestLossOfNamesTheRefusalOfRenewals(t *testing.T) {
	t.Parallel()
	refused := &transport.ServerError{Text: "NOREPLICAS Not enough good replicas to write."}
	for want, over := range map[string]error{
		"the lease was not renewed in time": redlatch.LossNotRenewed,
		"the lease was not renewed in time: the server refused to renew it: NOREPLICAS Not enough good replicas to write": fmt.Errorf("%w: %w", redlatch.LossNotRenewed, refused),
		string(redlatch.LossTaken): fmt.Errorf("%w: %w", redlatch.LossTaken, refused),
	} {
		require.Equal(t, want, (&lockFlags{}).lossOf(over, over))
	}
}

func TestGraceEndsWithinTheMargin(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{time.Millisecond, time.Second, 3 * time.Second, 30 * time.Second, time.Hour} {
		margin := (&lockFlags{lease: lease}).margin()
		require.LessOrEqual(t, margin, lease/10)
		require.LessOrEqual(t, margin, time.Second)
		require.Less(t, grace(margin), margin)
		require.Greater(t, grace(margin), margin/2)
	}
}
