package rmultilock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

// behind returns locks behind a network that can be broken. Their scripts are known.
func behind(t *testing.T) (*redistest.Server, *redistest.Proxy, *rmultilock.Lock) {
	t.Helper()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	c := connect(t, p.URL(), redlatch.WithCommandTimeout(3*time.Second), redlatch.WithPollCap(time.Hour))
	l := rmultilock.New(c, names(t, 20)...)
	require.NoError(t, take(t, l).Unlock())
	return s, p, l
}

func TestLocksWhoseReplyIsLostAreFreed(t *testing.T) {
	t.Parallel()
	s, p, l := behind(t)
	p.CutReplyAfter(0)
	_, err := l.TryLock(within(t))
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	free(t, s, l.Names())
	require.NoError(t, take(t, l).Unlock())
}

func TestLocksThatAreGrantedLateAreFreed(t *testing.T) {
	t.Parallel()
	s, p, l := behind(t)
	p.Blackhole(redistest.ToClient)
	ctx, cancel := context.WithCancel(t.Context())
	came := later(ctx, l)
	require.Eventually(t, func() bool { return len(left(t, s, l.Names())) == 20 }, soon, time.Millisecond)
	cancel()
	require.ErrorIs(t, (<-came).Err, redlatch.ErrUncertain)
	p.Heal()
	free(t, s, l.Names())
}

func TestAReleaseWhoseReplyIsLostIsSentAgain(t *testing.T) {
	t.Parallel()
	s, p, l := behind(t)
	h := take(t, l)
	p.CutReplyAfter(0)
	require.NoError(t, h.Unlock())
	free(t, s, l.Names())
}

func TestAReleaseThatRedisDoesNotAnswerGoesOn(t *testing.T) {
	t.Parallel()
	s, p, l := behind(t)
	h := take(t, l)
	p.Blackhole()
	err := h.Unlock()
	require.ErrorIs(t, err, redlatch.ErrUncertain)
	require.Len(t, unwrap(err), 20)
	p.Heal()
	free(t, s, l.Names())
}

func TestAWaiterThatMissedAMessageAsksAgain(t *testing.T) {
	t.Parallel()
	s, p, l := behind(t)
	far := connect(t, s.URL())
	one := takeOne(t, far, l.Names()[7])
	came := later(within(t), l)
	listening(t, s, l.Names()[7])
	p.Refuse(true)
	p.Reset()
	require.NoError(t, one.Unlock())
	p.Refuse(false)
	require.NoError(t, must(t, came).Unlock())
	free(t, s, l.Names())
}

// witness collects an observer's events.
type witness struct {
	mu   sync.Mutex // guards seen
	seen []any
}

func (w *witness) see(e any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, e)
}

// since returns the events since the last call.
func (w *witness) since() []any {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// The observer sees locks released for want of replicas as not acquired.
func TestTheReplicasOfAllLocksAreWaitedForAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	replica := redistest.StartReplica(t, s)
	seen := &witness{}
	c := connect(t, s.URL(), redlatch.WithReplicaSync(1, soon), redlatch.WithObserver(observed.Outcomes(seen.see)))
	all := names(t, 40)
	var members []rmultilock.Member
	for i, name := range all {
		switch {
		case i < 20:
			members = append(members, rlock.New(c, name))
		case i < 30:
			members = append(members, rfairlock.New(c, name))
		default:
			members = append(members, rfencedlock.New(c, name))
		}
	}
	l := rmultilock.Of(members...)
	require.NoError(t, take(t, l).Unlock()) // the server knows the scripts
	s.Do(t, "CONFIG", "RESETSTAT")
	h := take(t, l)
	waits := s.CommandStats(t)["wait"]
	require.Positive(t, waits)
	// One behind the first call, one behind the others, and more if this process was delayed.
	require.LessOrEqual(t, waits, int64(len(all)/5))
	require.NoError(t, h.Unlock())
	require.Len(t, seen.since(), 2*3*len(all), "each is acquired, ended and released, twice")

	replica.Kill()
	_, err := l.Lock(within(t), rlock.WithWait(2*time.Second))
	require.ErrorIs(t, err, redlatch.ErrNotReplicated)
	require.ErrorContains(t, err, all[0])
	events := seen.since()
	require.Len(t, events, len(all), "none was acquired, for its caller")
	for _, e := range events {
		refused, is := e.(redlatch.NotAcquired)
		require.True(t, is)
		require.Contains(t, all, refused.Name)
		require.Equal(t, 1, refused.Attempts)
		require.ErrorIs(t, refused.Err, redlatch.ErrNotReplicated)
	}
	for _, name := range all {
		require.Zero(t, s.Do(t, "EXISTS", name), "it is given back")
	}
}

func TestAnObserverOfRefusalsAloneHearsOfReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	type caller struct{}
	var mu sync.Mutex
	refused := map[string]any{}
	c := connect(t, s.URL(), redlatch.WithReplicaSync(1, 50*time.Millisecond), redlatch.WithObserver(redlatch.Observer{
		NotAcquired: func(ctx context.Context, e redlatch.NotAcquired) {
			mu.Lock()
			defer mu.Unlock()
			refused[e.Op+" "+e.Kind+" "+e.Name] = ctx.Value(caller{})
		},
	}))
	all := names(t, 2)
	_, err := rmultilock.Of(rfairlock.New(c, all[0]), rfairlock.New(c, all[1])).Lock(context.WithValue(within(t), caller{}, "me"))
	require.ErrorIs(t, err, redlatch.ErrNotReplicated)
	require.Equal(t, map[string]any{"lock fair " + all[0]: "me", "lock fair " + all[1]: "me"}, refused)
}

func TestLocksGivenBackBeforeReplicasWereWaitedForWereNotAcquired(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redistest.StartReplica(t, s)
	seen := &witness{}
	c := connect(t, s.URL(), redlatch.WithReplicaSync(1, soon), redlatch.WithObserver(observed.Outcomes(seen.see)))
	all := names(t, 2)
	slices.Sort(all) // they are taken in this order
	other, err := rfairlock.New(connect(t, s.URL()), all[1]).TryLock(t.Context())
	require.NoError(t, err)
	_, err = rmultilock.Of(rfairlock.New(c, all[0]), rfairlock.New(c, all[1])).TryLock(within(t))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	var refused []string
	for _, e := range seen.since() {
		n, is := e.(redlatch.NotAcquired)
		require.True(t, is, "%T", e)
		refused = append(refused, n.Name)
	}
	require.ElementsMatch(t, all, refused)
	require.NoError(t, other.Unlock())
	require.Zero(t, s.Do(t, "EXISTS", all[0]), "it is given back")
}

func TestBusyLocksLetACallerOfSeveralIn(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	here, there := connect(t, s.URL()), connect(t, s.URL())
	for _, busy := range [][]*redlatch.Client{{here, here, here}, {here, here, here, there, there}} {
		all := names(t, 3)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, c := range busy {
			wg.Go(func() {
				for ctx.Err() == nil {
					_ = rlock.New(c, all[1]).Do(ctx, func(context.Context) error { time.Sleep(time.Millisecond); return nil })
				}
			})
		}
		for range 5 {
			began := time.Now()
			h, err := rmultilock.New(here, all...).Lock(within(t))
			if assert.NoError(t, err) {
				t.Logf("after %v", time.Since(began))
				assert.NoError(t, h.Unlock())
			}
		}
		cancel()
		wg.Wait()
		free(t, s, all)
	}
}
