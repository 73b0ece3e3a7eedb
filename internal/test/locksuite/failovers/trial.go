package failovers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/rlock"
)

// failure is a way in which a master is replaced.
type failure struct {
	name    string
	planned bool
	silent  bool // connections stay, and nothing answers
	strike  func(tb testing.TB, p deployment) (after func())
}

// failures are those that are tried.
var failures = []failure{
	{"by hand", true, false, func(tb testing.TB, p deployment) func() {
		tb.Helper()
		p.failover(tb)
		return func() {}
	}},
	{"killed", false, false, func(tb testing.TB, p deployment) func() {
		tb.Helper()
		master, _ := p.master(tb)
		master.Kill()
		return func() {}
	}},
	{"frozen", false, true, func(tb testing.TB, p deployment) func() {
		tb.Helper()
		master, _ := p.master(tb)
		master.Pause()
		return master.Resume
	}},
}

// pair is a lock with a holder and a waiter.
type pair struct {
	lock *rlock.Lock // the holder's
	hold *rlock.Hold
	free time.Time // when the holder began to unlock; zero: it was taken away

	mu       sync.Mutex // guards what follows
	notified time.Time  // when the holder learned of its loss
	got      time.Time  // when the other one had it
	waiter   *rlock.Hold
	err      error
}

// trial is one failure, tried once.
type trial struct {
	t     *testing.T
	place deployment
	loses bool            // what no replica has is lost
	ctx   context.Context //nolint:containedctx // ends with the trial
	wg    sync.WaitGroup

	holders, waiters *redlatch.Client
	kept, lost       []*pair
	contenders       []*locksuite.Contenders
	struck           time.Time
}

// size is how large a trial is.
type size struct {
	locks int           // that survive, and as many that do not
	lease time.Duration // of their holders
}

// try breaks p under locks.
func (f failure) try(t *testing.T, p deployment, s size) Figures {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d := locksuite.Deployment{New: p.open}
	tr := &trial{
		t: t, place: p, loses: !f.planned || !p.careful(), ctx: ctx,
		holders: d.Client(t, redlatch.WithWatchdogTimeout(s.lease)), waiters: d.Client(t),
	}
	t.Cleanup(func() { cancel(); tr.wg.Wait() })
	tr.kept = tr.take(s.locks, p.prefix()+"kept")
	inStep(t, p)
	if tr.loses {
		cutOff(t, p)
	}
	tr.lost = tr.take(s.locks, p.prefix()+"lost")
	tr.queue()
	for _, kind := range locksuite.Kinds {
		tr.contenders = append(tr.contenders, d.StartContenders(t, kind, 3, p.prefix()+kind.Name))
	}
	tr.progress(10)
	p.settled(t)
	tr.struck = time.Now()
	after := f.strike(t, p)
	tr.recover()
	after()
	tr.progress(100)
	return tr.figures()
}

// take makes locks with a holder each.
func (tr *trial) take(locks int, name string) []*pair {
	tr.t.Helper()
	pairs := make([]*pair, locks)
	for i := range pairs {
		l := rlock.New(tr.holders, fmt.Sprintf("%s-%d", name, i))
		hold, err := l.Lock(tr.ctx)
		require.NoError(tr.t, err)
		p := &pair{lock: l, hold: hold}
		tr.wg.Go(func() { p.watch(tr.ctx) })
		pairs[i] = p
	}
	return pairs
}

// watch records when the holder gets ErrLost.
func (p *pair) watch(ctx context.Context) {
	<-p.hold.Context(ctx).Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.hold.Err(), redlatch.ErrLost) {
		p.notified = time.Now()
	}
}

// queue makes a waiter wait for each of the locks.
func (tr *trial) queue() {
	tr.t.Helper()
	var channels []string
	for _, p := range append(tr.kept[:len(tr.kept):len(tr.kept)], tr.lost...) {
		channels = append(channels, codec.LockChannel(p.lock.Name()))
		l := rlock.New(tr.waiters, p.lock.Name())
		tr.wg.Go(func() { p.wait(tr.ctx, l) })
	}
	listened(tr.t, tr.place, channels)
}

// wait tries until it has the lock, and keeps it.
func (p *pair) wait(ctx context.Context, l *rlock.Lock) {
	for ctx.Err() == nil {
		hold, err := l.Lock(ctx)
		p.mu.Lock()
		p.waiter, p.err = hold, err
		if err == nil {
			p.got = time.Now()
		}
		p.mu.Unlock()
		if err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond) // an error that a user would try again after
	}
}

// has reports whether the waiters of the locks have them, and the holders of those that
// were not unlocked have ErrLost.
func has(pairs []*pair) bool {
	for _, p := range pairs {
		p.mu.Lock()
		done := !p.got.IsZero() && (!p.free.IsZero() || !p.notified.IsZero())
		p.mu.Unlock()
		if !done {
			return false
		}
	}
	return true
}

// recover waits until all holders and waiters have recovered from the failure.
func (tr *trial) recover() {
	tr.t.Helper()
	if tr.loses {
		assert.Eventually(tr.t, func() bool { return has(tr.lost) }, soon, 5*time.Millisecond, "a caller waits for a lock that was lost, or believes to have it")
	}
	tr.progress(10)
	free := tr.kept
	if !tr.loses {
		free = append(free[:len(free):len(free)], tr.lost...)
	}
	for _, p := range free {
		if p.hold.Err() != nil {
			continue // lost though replicas have it: Figures count it
		}
		p.free = time.Now()
		assert.NoError(tr.t, p.hold.Unlock())
	}
	assert.Eventually(tr.t, func() bool { return has(free) }, soon, 5*time.Millisecond, "a waiter waits for a free lock")
}

// progress waits until each lock of the workers was taken n times more.
func (tr *trial) progress(n int) {
	tr.t.Helper()
	for _, c := range tr.contenders {
		c.AwaitProgress(n)
	}
}
