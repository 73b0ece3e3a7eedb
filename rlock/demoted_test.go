package rlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// demoted is a connection to a server that is a replica while the flag is set: it rejects scripts.
type demoted struct {
	redis.ConnWithTimeout
	replica *atomic.Bool
}

func (d demoted) Send(name string, args ...any) error {
	if d.replica.Load() && strings.HasPrefix(name, "EVAL") {
		return d.ConnWithTimeout.Send("EVAL", "return redis.error_reply('READONLY a replica')", 0)
	}
	return d.ConnWithTimeout.Send(name, args...)
}

func TestClientOfReplicaDialsAfterPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := redistest.Mini(t, embedded.WithInProcess())
		var replica atomic.Bool
		replica.Store(true)
		var dials atomic.Int32
		client, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
			dials.Add(1)
			conn, err := server.Server.Dial(ctx)
			timed, _ := conn.(redis.ConnWithTimeout)
			return demoted{timed, &replica}, err
		}, redlatch.WithCommandTimeout(time.Second))
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		_, err = rlock.New(client, "job").TryLock(t.Context())
		require.ErrorContains(t, err, "READONLY")
		require.Greater(t, dials.Load(), int32(1), "the address may lead to a master by now")
		require.Less(t, dials.Load(), int32(20))

		replica.Store(false)
		require.NoError(t, take(t, rlock.New(client, "job")).Unlock())
	})
}
