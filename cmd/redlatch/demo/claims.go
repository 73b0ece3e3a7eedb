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
	// company is how many workers of the victim's process shall be queued when it
	// is killed: it is their places that are left behind.
	company = 2
	// restAtLeast is how long a worker is busy elsewhere between two claims, and
	// restFactor how many times as long as its visits. So the queue is empty now and
	// then, which is what moves the deadlines of those in it: see the package's
	// documentation.
	restAtLeast = 80 * time.Millisecond
	restFactor  = 20
	// grace is for how long nobody may listen to the channel of somebody queued
	// before the living take it out: the least there is.
	grace = 5 * time.Second
	// pollCap is how often a process asks for all of its workers that wait, in case
	// the one before them is dead. It must be well below the wait.
	pollCap = 250 * time.Millisecond
)

// hand is one worker of a process that claims jobs under the fair lock.
type hand struct {
	*worker
	door   func(ctx context.Context) (*visit, error)
	shelf  *shelf
	client string        // what the owners of the process begin with
	before time.Duration // how long the visit before the last one took
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
	w.emit(&event{Kind: ready, Owner: client.ID().String()})
	var hands sync.WaitGroup
	for n := range w.cfg.Hands {
		hands.Go(func() {
			if err := w.hand(ctx, client, n); err != nil {
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

// hand is the n-th worker.
func (w *worker) hand(ctx context.Context, client *redlatch.Client, n int) error {
	c, err := w.redis.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	h := &hand{worker: w, shelf: newShelf(c, w.cfg.Prefix), client: client.ID().String()}
	h.door = throughLock(rfairlock.New(client, h.shelf.lock))
	if w.cfg.Broken {
		h.door = throughWall(fmt.Sprintf("%d-%d", w.cfg.ID, n))
	}
	for {
		job, took, err := h.claim(ctx)
		if err != nil || job == 0 {
			return err
		}
		rest := h.rest(took)
		if pause(ctx, rest, 2*rest); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// rest returns for how long to be busy elsewhere after a visit. One that happened to
// take long does not count: the worker would sleep for half of the run.
func (h *hand) rest(took time.Duration) time.Duration {
	usual := min(took, h.before)
	h.before = took
	return max(restAtLeast, restFactor*usual)
}

// claim does one job, 0 when none was left. It returns how long that took.
func (h *hand) claim(ctx context.Context) (job int64, took time.Duration, err error) {
	h.emit(&event{Kind: waiting})
	asked := time.Now()
	v, err := h.door(ctx)
	if err != nil {
		return 0, 0, err
	}
	entered := time.Now()
	h.emit(&event{Kind: acquired, Owner: v.owner, Wait: entered.Sub(asked)})
	job, err = h.inside(ctx, v)
	if leaveErr := v.leave(); leaveErr != nil {
		h.emit(&event{Kind: lost, Owner: v.owner})
	}
	return job, time.Since(entered), err
}

// inside is the critical section: who else took the first job of the list between
// the look at it and the end would do it twice, and throw the next one away.
func (h *hand) inside(ctx context.Context, v *visit) (int64, error) {
	if err := h.enter(&h.shelf.marker, v); err != nil {
		return 0, err
	}
	job, err := h.shelf.next()
	if err != nil {
		return 0, err
	}
	if job > 0 && h.stall.CompareAndSwap(true, false) {
		return 0, h.stand(ctx, v)
	}
	if job > 0 {
		pause(v.held, time.Millisecond, 2*time.Millisecond)
	}
	if v.over() {
		return job, nil // somebody else may be inside now: touch nothing; leave says so
	}
	e := &event{Kind: released, Owner: v.owner, Job: job}
	if e.Visit, e.Queue, err = h.shelf.finish(job); err != nil {
		return 0, err
	}
	if err := h.exit(&h.shelf.marker, v); err != nil {
		return 0, err
	}
	h.emit(e)
	return job, nil
}

// stand waits inside to be killed, as soon as others of the process are queued.
func (h *hand) stand(ctx context.Context, v *visit) error {
	for until := time.Now().Add(h.cfg.Lease); !h.cfg.Broken && ctx.Err() == nil && time.Now().Before(until); {
		line, err := h.shelf.line()
		if err != nil {
			return err
		}
		if placesOf(h.client, line) >= company {
			break
		}
		pause(ctx, time.Millisecond, 2*time.Millisecond)
	}
	h.emit(&event{Kind: stalled, Owner: v.owner})
	<-ctx.Done() // killed before that, unless the demo ends first
	return h.exit(&h.shelf.marker, v)
}

// placesOf counts the places in a queue that belong to a client.
func placesOf(client string, line []string) int {
	n := 0
	for _, owner := range line {
		if strings.HasPrefix(owner, client+":") {
			n++
		}
	}
	return n
}
