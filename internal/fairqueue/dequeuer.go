package fairqueue

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

const (
	// dequeuing is the maximum number of calls in flight. A renewal may have to wait for the replies to all of them.
	dequeuing = 4
	// batch is the maximum number of owners per call.
	batch = 100
	// fromFront makes every eighth call take the first owners in the queue, so that they don't wait forever.
	fromFront = 8
)

// dequeuer removes owners from queues on the server. It alternates between queues. Within a queue, it removes the last
// owners first, because removing an owner changes the deadlines of the waiters behind it.
type dequeuer struct {
	engine *engine.Engine

	mu       sync.Mutex // guards the fields below; not held across I/O
	queues   map[lockID]*leaving
	turns    []*leaving // queues to serve, the next one first
	inFlight int
}

type leaving struct {
	waiting []*departure // in the order of the queue
	begun   int          // number of calls so far
}

type departure struct {
	kind    Kind
	name    string          // of the lock, for logging
	request acquire.Request // the owner's
	place   int64           // see caller.number; 0 if unknown
	done    func()          // if not nil, runs when the owner has been removed or the retries have ended
	tell    func(error)     // if not nil, called instead of done with the result of a single call

	failed time.Time // when a call for it first failed
}

func (d *departure) owner() string {
	owner, _ := d.request.Owner.(string)
	return owner
}

func (d *departure) giveUp(c *transport.Call) { d.kind.GiveUp(c, &d.request) }

func (d *departure) over() {
	if d.done != nil {
		d.done()
	}
}

func (dq *dequeuer) lasts(r *acquire.Request) time.Duration {
	return max(millis(r.Lease), millis(r.Wait), dq.engine.FairWait)
}

func millis(boxed any) time.Duration {
	ms, _ := boxed.(int64)
	return time.Duration(ms) * time.Millisecond
}

// leave removes an owner from its queue in the background. It retries failed calls unless d.tell is set.
func (dq *dequeuer) leave(d *departure) {
	dq.engine.Join()
	dq.mu.Lock()
	begin := dq.inFlight < dequeuing
	if begin {
		dq.inFlight++
	} else {
		dq.push(d)
	}
	dq.mu.Unlock()
	if begin {
		dq.send([]*departure{d})
	}
}

// push is called with mu held.
func (dq *dequeuer) push(d *departure) {
	x := dq.queues[idOf(d.kind)]
	if x == nil {
		x = &leaving{}
		if dq.queues == nil {
			dq.queues = map[lockID]*leaving{}
		}
		dq.queues[idOf(d.kind)] = x
		dq.turns = append(dq.turns, x)
	}
	i, _ := slices.BinarySearchFunc(x.waiting, d.place, func(o *departure, place int64) int { return cmp.Compare(o.place, place) })
	x.waiting = slices.Insert(x.waiting, i, d)
}

func (dq *dequeuer) sendNext() {
	if next := dq.next(); next != nil {
		dq.send(next)
	}
}

func (dq *dequeuer) next() []*departure {
	dq.mu.Lock()
	defer dq.mu.Unlock()
	if len(dq.turns) == 0 {
		dq.inFlight--
		return nil
	}
	x := dq.turns[0]
	dq.turns = dq.turns[1:]
	all := x.next()
	if len(x.waiting) > 0 {
		dq.turns = append(dq.turns, x)
	} else {
		delete(dq.queues, idOf(all[0].kind))
	}
	return all
}

// next removes and returns the departures for the next call. If it takes them from the end, the very last comes first.
func (x *leaving) next() []*departure {
	x.begun++
	n := min(len(x.waiting), batch)
	first, last := len(x.waiting)-n, len(x.waiting)
	if x.begun%fromFront == 0 {
		first, last = 0, n
	}
	all := slices.Clone(x.waiting[first:last])
	x.waiting = slices.Delete(x.waiting, first, last)
	if x.begun%fromFront != 0 {
		slices.Reverse(all)
	}
	return all
}

func (dq *dequeuer) send(all []*departure) {
	call := &transport.Call{}
	for _, d := range all {
		d.giveUp(call)
	}
	dq.engine.Transport.Start(call, func(_ any, err error) { dq.sent(all, err) })
}

// sent handles the result of a call. Departures that failed together are retried together.
func (dq *dequeuer) sent(all []*departure, err error) {
	all = slices.DeleteFunc(all, func(d *departure) bool {
		if d.tell != nil {
			d.tell(err)
			dq.engine.Leave()
		}
		return d.tell != nil
	})
	if len(all) > 0 && err != nil && engine.Retryable(err) && !errors.Is(err, engine.ErrClosed) && dq.sendLater(all, err) {
		return
	}
	dq.sendNext()
	for _, d := range all {
		switch {
		case err != nil:
			dq.resolve(d)
		default:
			if !d.failed.IsZero() {
				dq.engine.Logger.Info("redlatch: unresolved call resolved", "lock", d.name, "owner", d.owner(), "was_held", false)
			}
			d.over()
		}
		dq.engine.Leave()
	}
}

func (dq *dequeuer) resolve(d *departure) {
	dq.engine.Resolve(&engine.InDoubt{
		Name: d.name, Owner: d.owner(), Lease: millis(d.request.Lease), Lasts: dq.lasts(&d.request),
		Undo: func(run engine.Run) (bool, error) { _, err := run(d.giveUp); return false, err },
		Done: func(bool) { d.over() },
	})
}

// sendLater queues the departures of a failed call again, but abandons a departure that has been failing for longer
// than a place in the queue lasts. After a pause, it sends the next call. It returns false if the client is closed.
func (dq *dequeuer) sendLater(all []*departure, err error) bool {
	now := time.Now()
	failed := now
	for _, d := range all {
		if d.failed.IsZero() {
			d.failed = now
		}
		if d.failed.Before(failed) {
			failed = d.failed
		}
	}
	return dq.engine.Go(func() {
		for _, d := range all {
			if now.Sub(d.failed) <= dq.lasts(&d.request) {
				dq.mu.Lock()
				dq.push(d)
				dq.mu.Unlock()
				continue
			}
			dq.engine.Logger.Warn("redlatch: unresolved call abandoned", "lock", d.name, "owner", d.owner(),
				"after", now.Sub(d.failed), "error", err)
			d.over()
			dq.engine.Leave()
		}
		dq.engine.Rest(now.Sub(failed))
		dq.sendNext() // the call fails if the client is closed
	})
}
