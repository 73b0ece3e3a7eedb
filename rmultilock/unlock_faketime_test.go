package rmultilock_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/transport"
)

// silenced is a transport to a server that stops answering once silent is set.
type silenced struct {
	transport.Transport

	silent bool
}

func (s *silenced) Start(call *transport.Call, done transport.Done) {
	if s.silent {
		call.Claim(0)
		return
	}
	s.Transport.Start(call, done)
}

func TestUnlockTakesOneCommandTimeoutForAllLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		tr := &silenced{Transport: redisconn.NewRedigo(redisconn.Config{
			Dial: srv.Server.Dial, Command: 3 * time.Second, Lease: 30 * time.Second,
			DialTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		})}
		client, err := redlatch.NewWithTransport(tr)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		h := take(t, rmultilock.Of(rlock.New(client, "a"), rlock.New(client, "b"), rlock.New(client, "c"),
			rfairlock.New(client, "d"), rfairlock.New(client, "e"), rfencedlock.New(client, "f")))
		for _, name := range []string{"a", "b"} { // which keep their locks
			_, err := rlock.New(client, name).Lock(h.Context(t.Context()))
			require.NoError(t, err)
		}
		tr.silent = true
		began := time.Now()
		require.ErrorIs(t, h.Unlock(), redlatch.ErrUncertain)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}
