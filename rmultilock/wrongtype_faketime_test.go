package rmultilock_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rmultilock"
)

func TestWrongTypeLeavesNothingInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		srv, client := inBubble(t, redlatch.WithLogger(slog.New(slog.NewTextHandler(&said, nil))))
		srv.Do(t, "SET", "b", "text")
		_, err := rmultilock.New(client, "a", "b").TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		time.Sleep(time.Second)
		require.NoError(t, client.Close())
		require.NotContains(t, said.String(), "open outcome")
	})
}
