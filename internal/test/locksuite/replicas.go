package locksuite

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

const missing = 300 * time.Millisecond

// Replicas are the masters and replicas of a deployment.
type Replicas struct {
	Masters []*redistest.Server // serve all locks
	Servers []*redistest.Server
	Each    int
	Watched bool                             // whether Sentinels send INFO to the masters
	Move    func(tb testing.TB, name string) // moves a lock to another master; nil if there is only one
}

// ReplicasOf returns the masters and replicas of a cluster that has one replica per master.
func ReplicasOf(c *redistest.Cluster) Replicas {
	nodes := c.Nodes()
	return Replicas{
		Masters: nodes[:3], Servers: nodes[3:], Each: 1,
		Move: func(tb testing.TB, name string) { tb.Helper(); MoveAway(tb, c, name) },
	}
}

// MoveAway moves the slot of a name to another master.
func MoveAway(tb testing.TB, c *redistest.Cluster, name string) {
	tb.Helper()
	to := c.Nodes()[0]
	if to == c.Owner(tb, name) {
		to = c.Nodes()[1]
	}
	c.MoveSlot(tb, transport.HashSlot(name), to, func() { time.Sleep(50 * time.Millisecond) })
}

// WaitsForReplicas checks redlatch.WithReplicaSync. It pauses the replicas, so it must not run in parallel with other
// tests on the same deployment.
func (d Deployment) WaitsForReplicas(t *testing.T, r Replicas) {
	t.Helper()
	d.askNoReplica(t, r)
	d.shareWaits(t, r)
	d.refuse(t, r)
}

func (d Deployment) client(t *testing.T, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	return d.Client(t, append(opts, redlatch.WithCommandTimeout(soon/2))...)
}

func (r Replicas) stats(t *testing.T, command string) (n int64) {
	t.Helper()
	for _, s := range r.Masters {
		n += s.CommandStats(t)[command]
	}
	return n
}

func (r Replicas) reset(t *testing.T) {
	t.Helper()
	for _, s := range r.Masters {
		s.Do(t, "CONFIG", "RESETSTAT")
	}
}

func (r Replicas) waiting(t *testing.T) (n int) {
	t.Helper()
	for _, s := range r.Masters {
		list, isText := s.Do(t, "CLIENT", "LIST").([]byte)
		require.True(t, isText)
		n += strings.Count(string(list), " cmd=wait ")
	}
	return n
}

func take(t *testing.T, kind Kind, c *redlatch.Client, name string) {
	t.Helper()
	hold, err := kind.New(c, name).TryLock(callers.Within(t))
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
}

// askNoReplica checks that without the option, clients do not send WAIT or INFO or open additional connections.
func (d Deployment) askNoReplica(t *testing.T, r Replicas) {
	t.Helper()
	name := redistest.Key(t)
	lax, syncing := d.client(t), d.client(t, redlatch.WithReplicaSync(r.Each, soon))
	r.reset(t)
	for _, kind := range Kinds {
		take(t, kind, lax, name)
	}
	require.Positive(t, r.stats(t, "evalsha")+r.stats(t, "eval"), "no statistics: the test is broken")
	for _, s := range r.Masters {
		stats := s.CommandStats(t)
		require.Zero(t, stats["wait"])
		if !r.Watched {
			require.LessOrEqual(t, stats["info"], int64(2), "of the test")
		}
	}
	require.Zero(t, r.waiting(t))
	for _, kind := range Kinds {
		take(t, kind, syncing, name)
	}
	require.EqualValues(t, 2, r.stats(t, "wait"))
	require.Equal(t, 1, r.waiting(t), "one connection for all")
}

func (d Deployment) shareWaits(t *testing.T, r Replicas) {
	t.Helper()
	const many = 100
	c, name := d.client(t, redlatch.WithReplicaSync(r.Each, soon)), redistest.Key(t)
	take(t, Kinds[0], c, name)
	r.reset(t)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			hold, err := Kinds[i%2].New(c, fmt.Sprintf("{%s}-%d", name, i)).TryLock(callers.Within(t))
			if assert.NoError(t, err) {
				assert.NoError(t, hold.Unlock())
			}
		})
	}
	wg.Wait()
	waits := r.stats(t, "wait")
	t.Logf("%d locks, %d WAITs", many, waits)
	require.Positive(t, waits)
	require.Less(t, waits, int64(many/2))
	if r.Move != nil {
		r.Move(t, name)
		take(t, Kinds[0], c, name)
	}
}

func (d Deployment) refuse(t *testing.T, r Replicas) {
	t.Helper()
	syncing, lax := d.client(t, redlatch.WithReplicaSync(r.Each, missing)), d.client(t)
	patient := d.client(t, redlatch.WithReplicaSync(r.Each, soon))
	name := redistest.Key(t)
	for _, c := range []*redlatch.Client{patient, lax} {
		take(t, Kinds[0], c, name)
	}
	kept, err := Kinds[0].New(patient, name+"-kept").TryLock(callers.Within(t))
	require.NoError(t, err)
	for _, s := range r.Servers {
		s.Pause()
	}
	for _, kind := range Kinds {
		lock := kind.New(syncing, name)
		_, err := lock.TryLock(callers.Within(t))
		require.ErrorIs(t, err, redlatch.ErrNotReplicated)
		require.ErrorContains(t, err, fmt.Sprintf("%q", name))
		held, err := kind.New(lax, name).IsLocked(callers.Within(t))
		require.NoError(t, err)
		require.False(t, held, "released before the error")
		take(t, kind, lax, name)
	}
	_, err = Kinds[0].New(syncing, name).Lock(callers.Within(t))
	require.ErrorIs(t, err, redlatch.ErrNotReplicated, "Lock does not retry")
	for _, s := range r.Servers {
		s.Resume()
	}
	require.NoError(t, kept.Unlock())
	for _, kind := range Kinds {
		take(t, kind, patient, name)
	}
}
