package demo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rfairlock"
)

const (
	// queuedAtKill is how many workers of the victim's process shall be queued when it
	// is killed: it is their places that are left behind.
	queuedAtKill = 2
	// pauseAtLeast is how long a worker is busy elsewhere between two claims, and
	// restFactor how many times as long as its visits. So the queue is empty now and
	// then, which is what moves the deadlines of those in it: see the package's
	// documentation.
	pauseAtLeast = 80 * time.Millisecond
	pauseFactor  = 20
	// grace is how long the channel of a queued waiter may be without a listener before
	// live waiters evict it: the minimum.
	grace = 5 * time.Second
	// pollCap is how often a process asks for all of its workers that wait, in case
	// the one before them is dead. It must be well below the wait.
	pollCap = 250 * time.Millisecond
)

// jobWorker is one worker of a process that claims jobs under the fair lock.
type jobWorker struct {
	*worker
	acquire  func(ctx context.Context) (*visit, error)
	state    *jobState
	client   string        // what the owners of the process begin with
	lastTook time.Duration // how long the visit before the last one took
}

// claimJobs runs the process's workers until no job is left, or ctx ends.
func claimJobs(ctx context.Context, w *worker) error {
	client, err := w.redis.Open(ctx, redlatch.WithWatchdogTimeout(w.cfg.Lease),
		redlatch.WithFairWaitTimeout(w.cfg.FairWait), redlatch.WithPollCap(pollCap), redlatch.WithDeadWaiterGrace(grace))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all holds have been given up
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.report(&event{Kind: ready, Owner: client.ID().String()})
	var hands sync.WaitGroup
	for n := range w.cfg.Workers {
		hands.Go(func() {
			if err := w.claimInTurns(ctx, client, n); err != nil {
				cancel(err) // the others stop, too
			}
		})
	}
	hands.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// claimInTurns is the n-th worker.
func (w *worker) claimInTurns(ctx context.Context, client *redlatch.Client, n int) error {
	c, err := w.redis.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	jw := &jobWorker{worker: w, state: newJobState(c, w.cfg.Prefix), client: client.ID().String()}
	jw.acquire = withLock(rfairlock.New(client, jw.state.lock), &w.visits)
	if w.cfg.Broken {
		jw.acquire = withoutLock(fmt.Sprintf("%d-%d", w.cfg.ID, n))
	}
	for {
		job, took, err := jw.claim(ctx)
		if err != nil || job == 0 {
			return err
		}
		rest := jw.nextPause(took)
		if pause(ctx, rest, 2*rest); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// nextPause returns for how long to be busy elsewhere after a visit. One that happened to
// take long does not count: the worker would sleep for half of the run.
func (w *jobWorker) nextPause(took time.Duration) time.Duration {
	usual := min(took, w.lastTook)
	w.lastTook = took
	return max(pauseAtLeast, pauseFactor*usual)
}

// claim does one job, 0 when none was left. It returns how long that took.
func (w *jobWorker) claim(ctx context.Context) (job int64, took time.Duration, err error) {
	w.report(&event{Kind: waiting})
	asked := time.Now()
	v, err := w.acquire(ctx)
	if err != nil {
		return 0, 0, err
	}
	entered := time.Now()
	w.report(&event{Kind: acquired, Owner: v.owner, Wait: entered.Sub(asked)})
	job, err = w.inside(ctx, v)
	if leaveErr := v.leave(); leaveErr != nil {
		w.report(&event{Kind: lost, Owner: v.owner})
	}
	return job, time.Since(entered), err
}

// inside is the critical section: another worker that took the first job of the list
// between the look at it and the end would do it twice, and throw the next one away.
func (w *jobWorker) inside(ctx context.Context, v *visit) (int64, error) {
	if err := w.enter(&w.state.marker, v); err != nil {
		return 0, err
	}
	job, err := w.state.next()
	if err != nil {
		return 0, err
	}
	if job > 0 && w.stall.CompareAndSwap(true, false) {
		return 0, w.stallInside(ctx, v)
	}
	if job > 0 {
		pause(v.held, time.Millisecond, 2*time.Millisecond)
	}
	if v.isLost() {
		return job, nil // another worker may hold the lock now: touch nothing; leave returns the error
	}
	e := &event{Kind: released, Owner: v.owner, Job: job}
	if e.Visit, e.Queue, err = w.state.finish(job); err != nil {
		return 0, err
	}
	if err := w.exit(&w.state.marker, v); err != nil {
		return 0, err
	}
	w.report(e)
	return job, nil
}

// stallInside waits inside to be killed, as soon as others of the process are queued.
func (w *jobWorker) stallInside(ctx context.Context, v *visit) error {
	for until := time.Now().Add(w.cfg.Lease); !w.cfg.Broken && ctx.Err() == nil && time.Now().Before(until); {
		queue, err := w.state.readQueue()
		if err != nil {
			return err
		}
		if placesOf(w.client, queue) >= queuedAtKill {
			break
		}
		pause(ctx, time.Millisecond, 2*time.Millisecond)
	}
	w.report(&event{Kind: stalled, Owner: v.owner})
	<-ctx.Done() // killed before that, unless the demo ends first
	return w.exit(&w.state.marker, v)
}

// placesOf counts the places in a queue that belong to a client.
func placesOf(client string, queue []string) int {
	n := 0
	for _, owner := range queue {
		if strings.HasPrefix(owner, client+":") {
			n++
		}
	}
	return n
}
