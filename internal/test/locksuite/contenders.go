package locksuite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Contenders are workers that acquire locks while the test breaks the deployment.
type Contenders struct {
	tb     testing.TB
	cancel context.CancelFunc
	wg     sync.WaitGroup
	locks  []*contendedLock

	mu   sync.Mutex // guards errs
	errs map[string]int
}

type contendedLock struct {
	name string

	mu      sync.Mutex // guards the fields below
	inside  int
	took    int
	twice   int // acquisitions while another worker held the lock
	last    time.Time
	longest time.Duration
	lost    int
}

// StartContenders starts the given number of workers for each name. They acquire and release the lock until Stop is
// called.
func (d Deployment) StartContenders(tb testing.TB, kind Kind, workers int, names ...string) *Contenders {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	c := &Contenders{tb: tb, cancel: cancel, errs: map[string]int{}}
	clients := make([]*redlatch.Client, workers)
	for i := range clients {
		clients[i] = d.Client(tb, redlatch.WithWatchdogTimeout(6*time.Second))
	}
	for _, name := range names {
		l := &contendedLock{name: name, last: time.Now()}
		c.locks = append(c.locks, l)
		for _, client := range clients {
			lock := kind.New(client, name)
			c.wg.Go(func() { c.work(ctx, l, lock) })
		}
	}
	tb.Cleanup(func() { cancel(); c.wg.Wait() })
	return c
}

func (c *Contenders) work(ctx context.Context, l *contendedLock, lock *rlock.Lock) {
	for ctx.Err() == nil {
		hold, err := lock.Lock(ctx)
		if err == nil {
			err = l.hold(hold)
		}
		if err != nil && ctx.Err() == nil {
			c.note(err)
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (l *contendedLock) hold(hold *rlock.Hold) error {
	ctx := hold.Context(context.Background())
	l.enter()
	select {
	case <-time.After(3 * time.Millisecond):
	case <-ctx.Done():
	}
	l.leave(hold.Err())
	return hold.Unlock()
}

func (l *contendedLock) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inside++; l.inside > 1 {
		l.twice++
	}
	now := time.Now()
	l.longest = max(l.longest, now.Sub(l.last))
	l.last = now
	l.took++
}

func (l *contendedLock) leave(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside--
	if errors.Is(err, redlatch.ErrLost) {
		l.lost++
	}
}

func (c *Contenders) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range []error{redlatch.ErrNotSent, redlatch.ErrUncertain, redlatch.ErrLost, redlatch.ErrNotHeld} {
		if errors.Is(err, known) {
			c.errs[known.Error()]++
			return
		}
	}
	c.errs[fmt.Sprintf("other: %v", err)]++
}

// AwaitProgress waits until each lock has been acquired another n times.
func (c *Contenders) AwaitProgress(n int) {
	c.tb.Helper()
	for _, l := range c.locks {
		from := l.taken()
		require.Eventually(c.tb, func() bool { return l.taken() >= from+n }, soon, time.Millisecond, "%s is no longer acquired", l.name)
	}
}

func (l *contendedLock) taken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.took
}

// Verdict is the result of Contenders.
type Verdict struct {
	Taken   int
	Twice   int // acquisitions while another worker held the lock
	Lost    int
	Longest time.Duration // the longest time in which a lock was not acquired
	Errors  map[string]int
}

// Stop stops the workers and returns the result.
func (c *Contenders) Stop() Verdict {
	c.tb.Helper()
	c.cancel()
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(soon):
		require.FailNow(c.tb, "a call does not return")
	}
	v := Verdict{Errors: c.errs}
	for _, l := range c.locks {
		v.Taken, v.Twice, v.Lost = v.Taken+l.took, v.Twice+l.twice, v.Lost+l.lost
		v.Longest = max(v.Longest, l.longest)
	}
	return v
}

// Exclusive is like Stop, but fails the test if two workers held a lock at the same time.
func (c *Contenders) Exclusive() Verdict {
	c.tb.Helper()
	v := c.Stop()
	assert.Zero(c.tb, v.Twice, "two workers held a lock")
	c.tb.Logf("%d acquired, %d lost, longest pause %v, reported %v", v.Taken, v.Lost, v.Longest.Round(time.Millisecond), v.Errors)
	return v
}

// ManyWaiters checks that a thousand waiters in a cluster can share one transport, which opens only one connection per
// master and kind of subscription.
func ManyWaiters(t *testing.T, named func(tb testing.TB, c *redistest.Cluster, name string) transport.Transport) {
	t.Helper()
	const waiters = 1000
	c := redistest.StartCluster(t, 3, 1)
	name := redistest.Key(t)
	open := func(called string) *redlatch.Client {
		return Deployment{New: func(tb testing.TB) transport.Transport { tb.Helper(); return named(tb, c, called) }}.Client(t)
	}
	holders, client := open("holders"), open(name)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	holds := make([]*rlock.Hold, waiters)
	took := make([]error, waiters)
	each(waiters, func(i int) { holds[i], took[i] = rlock.New(holders, fmt.Sprintf("%s-%d", name, i)).Lock(ctx) })
	var wg sync.WaitGroup
	for i := range waiters {
		require.NoError(t, took[i])
		wg.Go(func() {
			hold, err := rlock.New(client, fmt.Sprintf("%s-%d", name, i)).Lock(ctx)
			if err == nil {
				err = hold.Unlock()
			}
			took[i] = err
		})
	}
	for _, list := range []string{"CHANNELS", "SHARDCHANNELS"} {
		require.Eventually(t, func() bool { return channels(t, c, list, name) == waiters }, time.Minute, 20*time.Millisecond, list)
	}
	require.Equal(t, []int{2, 2, 2, 0, 0, 0}, listening(t, c, name), "subscribed connections per master and replica")
	each(waiters, func(i int) { assert.NoError(t, holds[i].Unlock()) })
	wg.Wait()
	for _, err := range took {
		require.NoError(t, err)
	}
}

func channels(t *testing.T, c *redistest.Cluster, list, name string) (n int) {
	t.Helper()
	for _, s := range c.Nodes() {
		names, _ := s.Do(t, "PUBSUB", list, strings.TrimSuffix(codec.LockChannel(name), "}")+"-*").([]any)
		n += len(names)
	}
	return n
}

func listening(t *testing.T, c *redistest.Cluster, name string) (counts []int) {
	t.Helper()
	for _, s := range c.Nodes() {
		list, isText := s.Do(t, "CLIENT", "LIST", "TYPE", "pubsub").([]byte)
		require.True(t, isText)
		counts = append(counts, strings.Count(string(list), " name="+name+" "))
	}
	return counts
}

// ManyHolds checks that 3,000 holds in a cluster, or 50,000 with REDLATCH_OVERLOAD=full, are renewed without additional
// goroutines.
func ManyHolds(t *testing.T, open func(tb testing.TB, c *redistest.Cluster) transport.Transport) {
	t.Helper()
	many, lease := 3000, 18*time.Second
	if os.Getenv("REDLATCH_OVERLOAD") == "full" {
		many, lease = 50_000, 30*time.Second
	} else {
		t.Parallel()
	}
	c := redistest.StartCluster(t, 3, 0)
	m := manyHolds{t: t, label: redistest.Key(t), many: many, lease: lease}
	// The goroutines of the client inherit the label.
	pprof.Do(t.Context(), pprof.Labels("many", m.label), func(ctx context.Context) { m.run(ctx, open(t, c)) })
}

type manyHolds struct {
	t     *testing.T
	label string
	many  int
	lease time.Duration
}

func (m manyHolds) run(ctx context.Context, tr transport.Transport) {
	m.t.Helper()
	seen := &renewals{}
	client, err := redlatch.NewWithTransport(tr, redlatch.WithWatchdogTimeout(m.lease), redlatch.WithObserver(redlatch.Observer{Renewed: seen.add}))
	require.NoError(m.t, err)
	defer func() { require.NoError(m.t, client.Close()) }()
	const few = 100
	holds, errs := make([]*rlock.Hold, m.many), make([]error, m.many)
	take := func(i int) { holds[i], errs[i] = rlock.New(client, fmt.Sprintf("%s-%d", m.label, i)).Lock(ctx) }
	each(few, take)
	before := goroutines(m.t, m.label)
	each(m.many-few, func(i int) { take(few + i) })
	require.NoError(m.t, errors.Join(errs...))
	const come = 20
	require.Eventually(m.t, func() bool { return goroutines(m.t, m.label) <= before+come }, m.lease, 10*time.Millisecond,
		"%d goroutines had %d locks", before, few)
	time.Sleep(m.lease)
	for _, h := range holds {
		require.NoError(m.t, h.Err())
	}
	renewed, slowest := seen.sum()
	m.t.Logf("%d holds, %d renewals, the slowest script took %v; %d goroutines, %d with %d holds",
		m.many, renewed, slowest.Round(time.Millisecond), goroutines(m.t, m.label), before, few)
	require.Less(m.t, slowest, m.lease/3/2)
	require.GreaterOrEqual(m.t, renewed, m.many)
	each(m.many, func(i int) { errs[i] = holds[i].Unlock() })
	require.NoError(m.t, errors.Join(errs...))
}

func goroutines(t *testing.T, label string) (sum int) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
	_, stacks, _ := strings.Cut(text.String(), "\n")
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if !strings.Contains(stack, strconv.Quote(label)) {
			continue
		}
		count, _, _ := strings.Cut(stack, " ")
		n, err := strconv.Atoi(count)
		require.NoError(t, err, stack)
		sum += n
	}
	require.Positive(t, sum, "the label is not found: the test is broken")
	return sum
}

type renewals struct {
	mu      sync.Mutex // guards the fields below
	holds   int
	slowest time.Duration
}

func (r *renewals) add(e redlatch.Renewed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds += e.Holds
	r.slowest = max(r.slowest, e.Took)
}

func (r *renewals) sum() (holds int, slowest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds, r.slowest
}

func each(n int, do func(i int)) {
	var wg sync.WaitGroup
	for w := range 100 {
		wg.Go(func() {
			for i := w; i < n; i += 100 {
				do(i)
			}
		})
	}
	wg.Wait()
}
