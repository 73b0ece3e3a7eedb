package rlock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// cutFor is for how long a replica that is cut off is waited for.
const cutFor = 300 * time.Millisecond

// replicated is a master, its replica, and what that is reached through.
func replicated(t *testing.T) (master, replica *redistest.Server, link *redistest.Proxy) {
	t.Helper()
	master = redistest.Start(t)
	replica = redistest.StartReplica(t, master)
	link = redistest.NewProxy(t, master.Addr())
	replica.Follow(t, link.Addr())
	return master, replica, link
}

// awaitsReplicas returns when the call, which has the lock, waits for replicas.
func (w *waiter) awaitsReplicas(t *testing.T, s *redistest.Server) {
	t.Helper()
	until(t, soon, "the call does not wait for replicas", func() bool {
		w.stillWaits(t)
		for line := range strings.Lines(text(t, s, "CLIENT", "LIST")) {
			if strings.Contains(line, " flags=b ") && strings.Contains(line, " cmd=wait ") {
				return true
			}
		}
		return false
	})
}

// A replica that is cut off is what makes two holders after a failover. Without the
// option the lock is granted, and granted again by the replica that is promoted; with it
// no caller gets the lock.
func TestU8LockThatNoReplicaHasIsRefusedWithReplicaSyncAndGrantedTwiceWithout(t *testing.T) {
	testlevel.All(t, "replicas that change roles")
	t.Parallel()
	master, replica, link := replicated(t)
	patient := connect(t, master.URL(), redlatch.WithReplicaSync(1, soon))
	syncing := connect(t, master.URL(), redlatch.WithReplicaSync(1, cutFor))
	lax := connect(t, master.URL())
	for kind, lock := range kinds {
		name := kind + " job"
		before := take(t, lock(patient, name))
		require.Equal(t, owners(t, master, name), owners(t, replica, name))
		require.NoError(t, before.Unlock())
	}
	kept := take(t, rlock.New(patient, "kept"))

	link.Blackhole()
	for kind, lock := range kinds {
		name := kind + " job"
		began := time.Now()
		_, err := lock(syncing, name).TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotReplicated)
		require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
		require.ErrorContains(t, err, fmt.Sprintf("trylock %q: redlatch: too few replicas have the lock: 0 of the 1 asked for within 300ms", name))
		require.GreaterOrEqual(t, time.Since(began), cutFor)
		require.Zero(t, redisInt(t, master, "EXISTS", name), "it was given back before the error was returned")
		_, err = lock(syncing, name).Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotReplicated, "Lock does not try again either")
		require.NoError(t, take(t, lock(lax, name)).Unlock())
	}
	granted := take(t, rlock.New(lax, "job"))
	require.NoError(t, kept.Err(), "its holders keep it")

	replica.Lead(t)
	promoted := connect(t, replica.URL())
	again := take(t, rlock.New(promoted, "job"))
	require.NoError(t, granted.Err(), "two are inside")
	require.NoError(t, again.Unlock())
	require.Equal(t, map[string]string{kept.Owner().String(): "1"}, owners(t, replica, "kept"), "what it had, it has")
	_, err := rlock.New(promoted, "kept").TryLock(t.Context())
	checkHeld(t, err)
}

// It costs a connection and, for each acquisition, a script and a share of a WAIT.
func TestReplicaSyncCostsOneScriptAndAShareOfAWait(t *testing.T) {
	t.Parallel()
	master, _, _ := replicated(t)
	client := connect(t, master.URL(), redlatch.WithReplicaSync(1, soon))
	before := master.Clients(t)
	l := rlock.New(client, "job")
	require.NoError(t, take(t, l).Unlock()) // the server knows the scripts
	require.Equal(t, before+1, master.Clients(t))
	master.Do(t, "CONFIG", "RESETSTAT")
	hold := take(t, l)
	inner := again(t, l, hold)
	require.NoError(t, inner.Unlock())
	owner, err := hold.HandOver()
	require.NoError(t, err)
	resumed, err := l.Resume(t.Context(), owner)
	require.NoError(t, err)
	require.NoError(t, resumed.Unlock())
	stats := master.CommandStats(t)
	require.EqualValues(t, 1, stats["wait"], "neither re-entries nor resumptions wait")
	for _, command := range []string{"role", "waitaof"} {
		require.Zero(t, stats[command], command)
	}

	const callers = 200
	master.Do(t, "CONFIG", "RESETSTAT")
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			hold, err := rlock.New(client, fmt.Sprint("job ", i)).Lock(t.Context())
			if err == nil {
				err = hold.Unlock()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	stats = master.CommandStats(t)
	t.Logf("%d callers, %d times WAIT", callers, stats["wait"])
	require.Less(t, stats["wait"], int64(callers))
}

// The state on the server is that of a lock of a client that waits for no
// replica.
func TestReplicaSyncLeavesNothingBehindOnTheServer(t *testing.T) {
	t.Parallel()
	master, _, _ := replicated(t)
	client := connect(t, master.URL(), redlatch.WithReplicaSync(1, soon))
	for kind, lock := range kinds {
		l := lock(client, kind)
		hold := take(t, l, rlock.WithLease(time.Minute))
		require.Equal(t, map[string]string{l.Internal().Text(hold.Owner()): "1"}, holders(t, master, kind))
		require.InDelta(t, time.Minute, ttl(t, master, kind), float64(soon))
		require.NoError(t, hold.Unlock())
	}
	require.Zero(t, redisInt(t, master, "DBSIZE"))
}

// holders returns the fields of a lock's hash, without the mode of a read/write lock.
func holders(t *testing.T, s redistest.Target, key string) map[string]string {
	t.Helper()
	fields := owners(t, s, key)
	delete(fields, codec.ModeField)
	return fields
}

func TestLockThatIsGivenBackForItsReplicasWakesWaiters(t *testing.T) {
	t.Parallel()
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			master, _, link := replicated(t)
			syncing := connect(t, master.URL(), redlatch.WithReplicaSync(1, 3*time.Second), noPoll())
			lax := connect(t, master.URL(), noPoll())
			require.NoError(t, take(t, lock(syncing, kind+" first")).Unlock())
			link.Blackhole()
			refused := await(t.Context(), lock(syncing, kind))
			refused.awaitsReplicas(t, master)
			there := await(t.Context(), lock(lax, kind))
			until(t, soon, "it waits", func() bool { return len(master.Channels(t)) > 0 })
			// A caller behind it in the local queue is next in this process.
			here := await(t.Context(), lock(syncing, kind), rlock.WithWait(time.Minute))
			require.ErrorIs(t, refused.failed(t, soon), redlatch.ErrNotReplicated)
			require.NoError(t, there.acquired(t, soon).Unlock())
			link.Heal()
			here.ended(t, soon)
			if here.err == nil {
				require.NoError(t, here.hold.Unlock())
			} else { // it was its turn before the other's
				require.ErrorIs(t, here.err, redlatch.ErrNotReplicated)
			}
			until(t, soon, "it is free", func() bool { return !locked(t, master, kind) })
		})
	}
}

// What others ask meanwhile does not wait for replicas.
func TestOtherCallsDoNotWaitForReplicas(t *testing.T) {
	t.Parallel()
	master, _, link := replicated(t)
	client := connect(t, master.URL(), redlatch.WithReplicaSync(1, 5*time.Second))
	held := take(t, rlock.New(client, "held"))
	link.Blackhole()
	waiting := await(t.Context(), rlock.New(client, "job"))
	waiting.awaitsReplicas(t, master)
	began := time.Now()
	for range 10 {
		_, err := rlock.New(client, "other").IsLocked(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, held.Unlock())
	require.Less(t, time.Since(began), atOnce)
	waiting.stillWaits(t)
	link.Heal()
	require.NoError(t, waiting.acquired(t, soon).Unlock())
}

func TestMasterWithoutReplicasGrantsNothingWithReplicaSync(t *testing.T) {
	t.Parallel()
	srv := redistest.Mini(t)
	for _, url := range []string{redistest.Shared(t).URL(), srv.URL()} {
		client := connect(t, url, redlatch.WithReplicaSync(1, 100*time.Millisecond))
		_, err := rlock.New(client, redistest.Key(t)).TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotReplicated)
	}
}

func TestUserWithoutTheRightToWaitGetsAnError(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	srv.Do(t, "ACL", "SETUSER", "default", "-wait")
	client := connect(t, srv.URL(), redlatch.WithReplicaSync(1, soon))
	_, err := rlock.New(client, "job").TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotReplicated)
	require.ErrorContains(t, err, "NOPERM")
	require.False(t, locked(t, srv, "job"))
}
