package rsemaphore_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rsemaphore"
)

func TestTooManyPermitsLeaveNothingInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		_, sem, _ := inBubble(t, redlatch.WithLogger(slog.New(slog.NewTextHandler(&said, nil))))
		_, err := sem.TryAcquire(t.Context(), 2)
		require.ErrorIs(t, err, rsemaphore.ErrTooMany)
		time.Sleep(time.Second)
		synctest.Wait()
		require.NotContains(t, said.String(), "open outcome")
	})
}
