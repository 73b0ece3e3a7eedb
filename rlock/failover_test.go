package rlock_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// The replica that takes over never had the lock: the next caller gets it at once, and
// the old holder learns of it with its next renewal. Until then there are two holders,
// which no client can prevent; the old one must find out, and must not touch the new
// hold.
func TestU8HolderLearnsOfAFailoverThatForgotItsLockAtItsNextRenewal(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	const lease = 2 * shortLease // whose end comes well after its next renewal
	var serving atomic.Pointer[redistest.Server]
	serving.Store(master)
	dial := func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", serving.Load().Addr())
	}
	client, err := redlatch.New(dial, redlatch.WithWatchdogTimeout(lease))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })

	replica.Do(t, "REPLICAOF", "NO", "ONE") // the last thing that reaches it from the master
	l := rlock.New(client, redistest.Key(t))
	hold := take(t, l)
	require.NoError(t, hold.Err())
	serving.Store(replica)
	master.Kill()

	next := take(t, rlock.New(connect(t, replica.URL()), l.Name()))
	awaitLoss(t, hold, lease/3+slack)
	require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, replica, l.Name()))
	require.NoError(t, next.Err())
	require.NoError(t, next.Unlock())
}

func TestU8HolderLearnsAtOnceThatAServerHasComeBackWithoutItsLock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := connect(t, server.URL(), redlatch.WithWatchdogTimeout(forever)) // the next renewal is 20 s away
	hold := take(t, rlock.New(client, "job"))
	unlocked := take(t, rlock.New(client, "unlocked"))
	server.Kill()
	server.Restart()
	require.ErrorIs(t, unlocked.Unlock(), redlatch.LossForgotten)
	awaitLoss(t, hold, soon)
	require.ErrorIs(t, hold.Err(), redlatch.LossForgotten)
	require.Equal(t, int64(0), server.Do(t, "DBSIZE"))
}
