package rreadwritelock_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// A writer has reached its maximum, and the client is closed before the writer's lease is over.
func TestNothingIsLoggedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		var said bytes.Buffer
		client, err := redlatch.New(srv.Server.Dial, redlatch.WithLogger(slog.New(slog.NewTextHandler(&said, nil))))
		require.NoError(t, err)
		rw := rreadwritelock.New(client, "job")
		w := take(t, rw.Write(), rlock.WithMaxHold(time.Second))
		r := enter(t, rw.Read(), w)
		unlock(t, r)
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, w.Err(), redlatch.ErrMaxHold)
		require.NoError(t, client.Close())
		said.Reset()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, said.String())
	})
}
