package locksuite

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
	"github.com/redlatch/redlatch/rlock"
)

// Contenders is workers that take locks again and again while the test breaks the deployment,
// and the result. Each worker has the lock for some milliseconds.
type Contenders struct {
	tb     testing.TB
	cancel context.CancelFunc
	wg     sync.WaitGroup
	locks  []*contendedLock

	mu   sync.Mutex // guards what follows
	errs map[string]int
}

// contendedLock is one lock that several workers take.
type contendedLock struct {
	name string

	mu      sync.Mutex // guards what follows
	inside  int        // workers whose contexts are live
	twice   int        // how often there were two
	took    int
	last    time.Time     // when it was taken last
	longest time.Duration // between two
	lost    int           // holds that ended with ErrLost
}

// StartContenders makes workers of their own clients for each of the named locks, and lets
// them work until Stop. A worker tries again whatever a lock returns.
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

// work takes the lock until ctx ends.
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

// hold has the lock for a moment. What counts is what the hold says: from the moment
// that its context is over it is no hold.
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

// AwaitProgress waits until every lock has been taken n times more.
func (c *Contenders) AwaitProgress(n int) {
	c.tb.Helper()
	for _, l := range c.locks {
		from := l.taken()
		require.Eventually(c.tb, func() bool { return l.taken() >= from+n }, soon, time.Millisecond, "%s is not taken any more", l.name)
	}
}

func (l *contendedLock) taken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.took
}

// Verdict is the result of Contenders.
type Verdict struct {
	// Taken is how often locks were taken, Twice how often by two at once, Lost how many
	// holds ended with ErrLost.
	Taken, Twice, Lost int
	// Longest is the longest time without an acquisition of a lock.
	Longest time.Duration
	// Errors are the errors that workers got, and how often.
	Errors map[string]int
}

// Stop ends the work and returns what came of it.
func (c *Contenders) Stop() Verdict {
	c.tb.Helper()
	c.cancel()
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(soon):
		require.FailNow(c.tb, "a call does not end")
	}
	v := Verdict{Errors: c.errs}
	for _, l := range c.locks {
		v.Taken, v.Twice, v.Lost = v.Taken+l.took, v.Twice+l.twice, v.Lost+l.lost
		v.Longest = max(v.Longest, l.longest)
	}
	return v
}

// Exclusive stops the workers and checks that no two had a lock at once.
func (c *Contenders) Exclusive() Verdict {
	c.tb.Helper()
	v := c.Stop()
	assert.Zero(c.tb, v.Twice, "two had a lock at once")
	c.tb.Logf("%d taken, %d lost, longest pause %v, reported %v", v.Taken, v.Lost, v.Longest.Round(time.Millisecond), v.Errors)
	return v
}
