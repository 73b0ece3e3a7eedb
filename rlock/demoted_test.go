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
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// An old master that has become a replica keeps its connections, and the address leads
// to the new one: a virtual address, a proxy, a name. A client that writes to the old
// master gets an error and moves to the new one without an operator's help; so do its
// subscriptions. Holders keep the locks that survived, and learn which did not.
func TestU8ClientsLeaveAnOldMasterThatBecameAReplica(t *testing.T) {
	testlevel.All(t, "replicas that change roles")
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	address := redistest.NewProxy(t, master.Addr())
	const lease = 2 * shortLease
	log, logged := newJournal()
	client := connect(t, address.URL(), redlatch.WithWatchdogTimeout(lease), logged, noPoll())
	survives := take(t, rlock.New(client, "survives"))
	until(t, soon, "the replica has it", func() bool { return locked(t, replica, "survives") })
	const heldByHand = "held"

	replica.Lead(t)
	holdByHand(t, replica, heldByHand, forever)
	holdByHand(t, master, heldByHand, forever)
	lost := take(t, rlock.New(client, "lost"))
	waiting := await(t.Context(), rlock.New(client, heldByHand))
	awaitWaiters(t, master, heldByHand)
	address.Redirect(replica.Addr())
	replica.Do(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	master.Follow(t, replica.Addr())
	before := address.Connections()

	hold := take(t, rlock.New(client, "new"))
	require.NoError(t, hold.Err())
	require.True(t, locked(t, replica, "new"))
	until(t, soon, "none is left behind", func() bool {
		return len(master.Channels(t)) == 0 && listeners(t, replica, heldByHand) == 1
	})
	require.Equal(t, before, address.Connections(), "one for one")
	freeByHand(t, replica, heldByHand)
	require.NoError(t, waiting.acquired(t, soon).Unlock())

	awaitClosed(t, lost.Context(t.Context()).Done(), lease/3+slack, "the loss")
	require.ErrorIs(t, lost.Err(), redlatch.ErrLost)
	awaitRenewal(t, replica, "survives")
	require.NoError(t, survives.Unlock())
	require.NoError(t, hold.Unlock())
	require.Equal(t, 1, log.count("has become a replica", "level=WARN"))
	require.Zero(t, log.count("connection lost"))
}

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
