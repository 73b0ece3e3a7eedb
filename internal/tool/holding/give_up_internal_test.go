package holding

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
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
	h := &Held{Hold: hold, Lock: lock, Since: time.Now(), client: client}
	signals, came := make(chan os.Signal), make(chan error, 1)
	go func() { came <- (&Options{}).await(t.Context(), h, time.Hour, signals) }()
	<-hold.Context(t.Context()).Done()
	time.Sleep(100 * time.Millisecond) // until that was seen
	select {
	case signals <- os.Interrupt:
		require.ErrorIs(t, <-came, redlatch.ErrMaxHold)
	case <-time.After(10 * time.Second):
		require.Fail(t, "signals are not heeded")
	}
}
