package compat

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

const (
	crowdClients = 2
	crowdThreads = 3
	crowdSpan    = 8 * time.Second
	crowdLeast   = 50
	crowdRest    = 4 * time.Millisecond
	crowdPermits = 3
	// crowdShare is the minimum share of each language per kind, in percent. When a message announces a release, a
	// Redisson client wakes one of its waiters, whereas our client wakes all of its readers.
	crowdShare = 10
)

// crowd checks which owners hold a lock at the same time. An owner is inside from the time at which it receives the
// reply until it sends the release.
type crowd struct {
	name string
	may  func(inside map[string]int) bool

	mu     sync.Mutex // guards the fields below
	inside map[string]int
	most   int
	rounds map[string]*[2]int
	wrong  []string
}

func (c *compat) testReadWriteFleet(t *testing.T) {
	s, f := c.crowd(t, "readers and writers", func(inside map[string]int) bool {
		return inside["write"] == 0 || inside["write"] == 1 && inside["read"] == 0
	}, "read", "read", "write")
	requireCleanOn(t, s, f.name, protocol.ReadWriteChannel(f.name))
}

func (c *compat) testPermitFleet(t *testing.T) {
	s, f := c.crowd(t, "permits", func(inside map[string]int) bool { return inside[withIDs] <= crowdPermits }, withIDs)
	require.Equal(t, crowdPermits, f.most, "they never met")
	require.Equal(t, fmt.Sprint(crowdPermits), fmt.Sprintf("%s", s.Do(t, "GET", f.name)))
	require.Zero(t, s.Do(t, "EXISTS", protocol.PermitsKey(f.name)))
	awaitListenersOn(t, s, protocol.SemaphoreChannel(f.name), 0)
}

func (c *compat) crowd(
	t *testing.T, line string, may func(map[string]int) bool, kinds ...string,
) (*redistest.Server, *crowd) {
	t.Helper()
	s := redistest.Start(t)
	f := &crowd{name: redistest.Key(t), may: may, inside: map[string]int{}, rounds: map[string]*[2]int{}}
	for _, kind := range kinds {
		f.rounds[kind] = &[2]int{}
	}
	if kinds[0] == withIDs {
		must(rsemaphore.NewExpirable(open(t, s), f.name).TrySetPermits(t.Context(), crowdPermits))(t)
	}
	var verdict string
	c.table.note(t, c.release.String(), line, func() string { return verdict })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for range crowdClients {
		client, j := open(t, s), connect(t, c.peer, s, nil)
		for n := range crowdThreads {
			all.Go(func() { f.play(ctx, t, 0, kinds, ourTakes(client, f.name)) })
			all.Go(func() { f.play(ctx, t, 1, kinds, j.takes(f.name, fmt.Sprint("t", n))) })
		}
	}
	for began := time.Now(); ctx.Err() == nil && time.Since(began) < 2*atMost; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > crowdSpan && f.least() >= crowdLeast {
			break
		}
	}
	cancel()
	all.Wait()
	require.Empty(t, f.wrong, "owners were inside that exclude each other")
	require.GreaterOrEqual(t, f.least(), crowdLeast, "%v", f.rounds)
	for kind, n := range f.rounds {
		require.GreaterOrEqual(t, 100*min(n[0], n[1])/(n[0]+n[1]), crowdShare, "%s: Go %d, Java %d", kind, n[0], n[1])
		verdict += fmt.Sprintf("%s: %d rounds, Go %d %%; ", kind, n[0]+n[1], 100*n[0]/(n[0]+n[1]))
	}
	return s, f
}

func (f *crowd) play(
	ctx context.Context, t *testing.T, side int, kinds []string, take func(kind string) (func() error, error),
) {
	t.Helper()
	for ctx.Err() == nil {
		kind := kinds[rand.IntN(len(kinds))]
		release, err := take(kind)
		if !assert.NoError(t, err) {
			return
		}
		f.count(kind, side, 1)
		rest()
		f.count(kind, side, -1)
		if !assert.NoError(t, release()) {
			return
		}
		rest()
	}
}

func rest() { time.Sleep(time.Duration(rand.Int64N(int64(crowdRest)))) }

func (f *crowd) count(kind string, side, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inside[kind] += n
	f.rounds[kind][side] += max(n, 0)
	f.most = max(f.most, f.inside[kind])
	if !f.may(f.inside) {
		f.wrong = append(f.wrong, fmt.Sprint(f.inside))
	}
}

func (f *crowd) least() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	least := 1 << 30
	for _, n := range f.rounds {
		least = min(least, n[0], n[1])
	}
	return least
}

func ourTakes(client *redlatch.Client, name string) func(kind string) (func() error, error) {
	return func(kind string) (func() error, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return take(ctx, client, kind, name, 0)
	}
}

func (j *java) takes(name, thread string) func(kind string) (func() error, error) {
	return func(kind string) (func() error, error) {
		m := &javaMember{java: j, kind: kind, name: name, thread: thread, waits: peer.Command{"lease": 60000}}
		m.begin(m.takes())
		reply, err := m.call.Wait(2 * time.Minute)
		if err == nil && kind == withIDs {
			err = reply.Into(&m.id)
		}
		return func() error {
			m.begin(m.releases())
			_, err := m.call.Wait(2 * time.Minute)
			return err
		}, err
	}
}
