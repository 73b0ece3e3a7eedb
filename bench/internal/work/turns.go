package work

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

var errTogether = errors.New("too many goroutines held the lock")

type turns struct {
	common
	spec    Spec
	locker  contest.Locker
	inside  atomic.Int32 // writers, or holders of permits or other locks
	readers atomic.Int32
	members []member
}

// member is written by one goroutine. begin is when it started to wait, in Unix nanoseconds, or 0.
type member struct {
	count atomic.Int64
	begin atomic.Int64
	_     [48]byte // fills up a cache line
}

func startTurns(ctx context.Context, c contest.Contestant, spec Spec) (job, error) {
	locker, err := c.Open(ctx, contest.Settings{Addr: spec.Addr, Permits: spec.Permits})
	if err != nil {
		return nil, err
	}
	has := locker.ReadKey != nil
	if !has && spec.Reads > 0 {
		return nil, errors.Join(fmt.Errorf("work: %s does not support readers", c.Name), locker.Close())
	}
	t := &turns{spec: spec, locker: locker, members: make([]member, spec.Goroutines)}
	ctx, t.cancel = context.WithCancel(ctx)
	for i := range t.members {
		name := spec.Key
		if spec.Kind == Pairs {
			name += ":" + strconv.Itoa(i)
		}
		write, read := locker.Key(name), contest.Key(nil)
		if has {
			read = locker.ReadKey(name)
		}
		t.start(func() error { return t.take(ctx, write, read, &t.members[i]) })
	}
	return t, nil
}

func (t *turns) take(ctx context.Context, write, read contest.Key, m *member) error {
	pairs := t.spec.Kind == Pairs
	for ctx.Err() == nil {
		key, reads := write, t.spec.Reads > rand.IntN(100) //nolint:gosec // not used for security
		if reads {
			key = read
		}
		began := time.Now()
		m.begin.Store(began.UnixNano())
		held, err := key(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		took := time.Since(began)
		if !pairs {
			t.look(reads)
		}
		m.begin.Store(0)
		if err := held.Unlock(); err != nil {
			return err
		}
		if pairs {
			took = time.Since(began)
		}
		if t.counting.Load() {
			m.count.Add(1)
			t.times.Add(took)
		}
	}
	return nil
}

func (t *turns) look(reads bool) {
	own, others := &t.inside, &t.readers
	if reads {
		own, others = others, own
	}
	if n := own.Add(1); !reads && int(n) > max(t.spec.Permits, 1) || others.Load() != 0 {
		t.failed.set(errTogether)
	}
	own.Add(-1)
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func (t *turns) end() Values {
	t.counting.Store(false)
	var sum, most int64
	least := int64(-1)
	for i := range t.members {
		n := t.members[i].count.Load()
		sum += n
		most = max(most, n)
		if least < 0 || n < least {
			least = n
		}
	}
	v := t.since.per(float64(sum))
	t.countOpenWaits()
	t.describe(v)
	equal := float64(sum) / float64(len(t.members))
	v[Luckiest], v[Unluckiest] = float64(most)/equal, float64(least)/equal
	return v
}

// Otherwise a contestant that starves callers would not have long waits.
func (t *turns) countOpenWaits() {
	if t.spec.Kind == Pairs {
		return
	}
	usual, end := t.times.Quantile(0.5), time.Now().UnixNano()
	for i := range t.members {
		if began := t.members[i].begin.Load(); began != 0 && time.Duration(end-began) > usual {
			t.times.Add(time.Duration(end - began))
		}
	}
}

func (t *turns) close() error { return t.finish(t.locker.Close) }

const settle = 3 * time.Millisecond

// The two clients are in the same process, but share only the server. One clock measures both ends.
type wakeups struct {
	common  // times are measured from the return of Unlock
	lockers [2]contest.Locker
	keys    [2]contest.Key
	whole   stats.Histogram // measured from the call to Unlock
}

type got struct {
	held contest.Held
	at   time.Time
	err  error
}

func startWakeups(ctx context.Context, c contest.Contestant, spec Spec) (job, error) {
	w := &wakeups{}
	for i := range w.lockers {
		locker, err := c.Open(ctx, contest.Settings{Addr: spec.Addr})
		if err != nil {
			return nil, err
		}
		w.lockers[i], w.keys[i] = locker, locker.Key(spec.Key)
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.start(func() error { return w.pass(ctx) })
	return w, nil
}

func (w *wakeups) pass(ctx context.Context) error {
	held, err := w.keys[0](ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	for next := 1; ; next = 1 - next {
		result := make(chan got, 1)
		go func() {
			h, err := w.keys[next](ctx)
			result <- got{h, time.Now(), err}
		}()
		time.Sleep(settle)
		called := time.Now()
		if err := held.Unlock(); err != nil {
			w.cancel()
			<-result
			return err
		}
		freed := time.Now()
		g := <-result
		if g.err != nil {
			return unlessEnded(ctx, g.err)
		}
		if w.counting.Load() {
			w.times.Add(g.at.Sub(freed)) // counts as 0 if the waiter returned first; see Histogram.Add
			w.whole.Add(g.at.Sub(called))
		}
		held = g.held
	}
}

func (w *wakeups) end() Values {
	w.counting.Store(false)
	v := w.describe(w.since.per(float64(w.times.Count())))
	v[Whole] = micros(w.whole.Quantile(0.5))
	return v
}

func (w *wakeups) close() error { return w.finish(w.lockers[0].Close, w.lockers[1].Close) }
