package rlock_test

import (
	"context"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// replicated returns a master, its replica and the link between them.
func replicated(t *testing.T) (master, replica *redistest.Server, link *redistest.Proxy) {
	t.Helper()
	master = redistest.Start(t)
	replica = redistest.StartReplica(t, master)
	link = redistest.NewProxy(t, master.Addr())
	replica.Follow(t, link.Addr())
	return master, replica, link
}

// awaitsReplicas returns when the call is waiting for replicas.
func (w *waiter) awaitsReplicas(t *testing.T, s *redistest.Server) {
	t.Helper()
	until(t, soon, "the call does not wait for replicas", func() bool {
		w.stillWaits(t)
		list, _ := s.Do(t, "CLIENT", "LIST").([]byte)
		return regexp.MustCompile(`(?m) flags=b .* cmd=wait `).Match(list)
	})
}

// holders returns a lock's owners, without the mode field.
func holders(t *testing.T, s redistest.Target, key string) map[string]string {
	t.Helper()
	fields := owners(t, s, key)
	delete(fields, protocol.ModeField)
	return fields
}

func TestUnreplicatedLockFailsWithoutDelayingCalls(t *testing.T) {
	t.Parallel()
	master, replica, link := replicated(t)
	client := connect(t, master.URL(), redlatch.WithReplicaSync(1, forever))
	held := take(t, rlock.New(client, "held"))
	require.Equal(t, owners(t, master, "held"), owners(t, replica, "held"))
	link.Blackhole()
	_, err := rlock.New(connect(t, master.URL(), redlatch.WithReplicaSync(1, 300*time.Millisecond)), "refused").TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotReplicated)
	require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
	require.EqualError(t, err, `try-lock "refused": redlatch: too few replicas have the lock: 0 of 1 required replicas within 300ms`)
	require.False(t, locked(t, master, "refused"), "it was released before the error was returned")
	waiting := await(t.Context(), rlock.New(client, "job"))
	waiting.awaitsReplicas(t, master)
	_, err = rlock.New(client, "other").IsLocked(t.Context())
	require.NoError(t, err)
	require.NoError(t, held.Unlock())
	waiting.stillWaits(t)
	link.Heal()
	require.NoError(t, waiting.acquired(t, soon).Unlock())
}

func TestUserWithoutWaitRightFails(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	srv.Do(t, "ACL", "SETUSER", "default", "-wait")
	client := connect(t, srv.URL(), redlatch.WithReplicaSync(1, soon))
	_, err := rlock.New(client, "job").TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotReplicated)
	require.ErrorContains(t, err, "NOPERM")
	require.False(t, locked(t, srv, "job"))
}

// Until its next renewal the old holder does not know about the second one, and must not affect its
// lock.
func TestU8HolderDetectsFailoverAtNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master, promoted := redistest.Mini(t, embedded.WithInProcess()), redistest.Mini(t, embedded.WithInProcess())
		var serving atomic.Pointer[redistest.MiniServer]
		serving.Store(master)
		client, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) { return serving.Load().Server.Dial(ctx) })
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		hold := take(t, rlock.New(client, "job"))
		serving.Store(promoted)
		next := take(t, rlock.New(fakeClient(t, promoted), "job"))
		master.DropConnections()
		awaitLoss(t, hold, 10*time.Second+time.Millisecond)
		require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, promoted, "job"))
		require.NoError(t, next.Err())
		require.NoError(t, next.Unlock())
	})
}

func TestU8HolderDetectsEmptyRestartedServer(t *testing.T) {
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

// The old master keeps its connections, and the address (a proxy, a virtual IP) leads to the new
// one. Clients and subscriptions move on the first READONLY error.
func TestU8ClientsLeaveDemotedMaster(t *testing.T) {
	testlevel.All(t, "replicas that change roles")
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	address := redistest.NewProxy(t, master.Addr())
	log, logged := newJournal()
	client := connect(t, address.URL(), redlatch.WithWatchdogTimeout(forever), logged, noPoll())
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
	until(t, soon, "no connection remains", func() bool {
		return len(master.Channels(t)) == 0 && listeners(t, replica, heldByHand) == 1
	})
	require.Equal(t, before, address.Connections(), "one new connection per lost one")
	freeByHand(t, replica, heldByHand)
	require.NoError(t, waiting.acquired(t, soon).Unlock())

	awaitClosed(t, lost.Context(t.Context()).Done(), soon, "the loss")
	require.ErrorIs(t, lost.Err(), redlatch.ErrLost)
	require.Equal(t, 1, log.count("became a replica", "level=WARN"))
	require.Zero(t, log.count("connection lost", "level=WARN"))
	awaitRenewal(t, replica, "survives")
	require.NoError(t, survives.Unlock())
	require.NoError(t, hold.Unlock())
}
