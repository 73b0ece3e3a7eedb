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
	// dequeuing is how many calls take owners out of queues at a time. Each may
	// take the server some milliseconds, in which a renewal waits behind them all.
	dequeuing = 4
	// batch is how many owners leave one queue by one call, at most, or are
	// evicted: a call walks the whole queue, but must not keep the server for long.
	batch = 100
	// fromFront is how often those that stand furthest in front are among them, so
	// that they are not kept for ever by those that leave behind them.
	fromFront = 8
)

// dequeuer takes owners out of queues on the server, the queues in turn. Of one queue those at
// the end go first: then hardly any of them has others behind it whose deadlines change, which
// is a part of what leaving costs.
type dequeuer struct {
	engine *engine.Engine

	mu       sync.Mutex // guards what follows; never held across I/O
	queues   map[lockID]*leaving
	turns    []*leaving // the next one first
	inFlight int
}

// leaving are the owners that are to leave one queue.
type leaving struct {
	waiting []*departure // in the order of the queue
	begun   int          // calls
}

// departure is an owner that is to leave a queue.
type departure struct {
	kind    Kind
	name    string          // the lock's, for the log
	request acquire.Request // of the owner
	place   int64           // grows from the front of a queue to its end, 0 when it is not known
	done    func()          // if not nil, runs when it has left, or was given up
	tell    func(error)     // in place of done: takes in the outcome of one call, and none is tried again

	failed time.Time // when its call failed first
}

func (d *departure) owner() string {
	owner, _ := d.request.Owner.(string) // always one
	return owner
}

func (d *departure) giveUp(c *transport.Call) { d.kind.GiveUp(c, &d.request) }

func (d *departure) over() {
	if d.done != nil {
		d.done()
	}
}

// lasts returns for how long the place of an owner may block others: not the lease, which may be
// short, but its wait, and at least that of owners that have none of their own.
func (dq *dequeuer) lasts(r *acquire.Request) time.Duration {
	return max(millis(r.Lease), millis(r.Wait), dq.engine.FairWait)
}

// millis is a time of a request.
func millis(boxed any) time.Duration {
	ms, _ := boxed.(int64) // always one
	return time.Duration(ms) * time.Millisecond
}

// begin returns true when a departure may begin now. Otherwise next hands it out
// later.
func (dq *dequeuer) begin(d *departure) bool {
	dq.mu.Lock()
	defer dq.mu.Unlock()
	if dq.inFlight < dequeuing {
		dq.inFlight++
		return true
	}
	dq.push(d)
	return false
}

// put makes a departure wait, until next hands it out.
func (dq *dequeuer) put(d *departure) {
	dq.mu.Lock()
	defer dq.mu.Unlock()
	dq.push(d)
}

// push adds to those that wait, mu held.
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

// next ends a departure, and returns those that are to begin in its place, by one
// call.
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

// next returns those that leave next: the last in the queue, and the very last of them first.
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

// leave takes an owner out of a queue. It does not wait for that; what goes wrong is tried
// again in the background, but for a departure that is to be told. When many leave one queue,
// one call takes several out.
func (dq *dequeuer) leave(d *departure) {
	dq.engine.Join()
	if dq.begin(d) {
		dq.send([]*departure{d})
	}
}

func (dq *dequeuer) send(all []*departure) {
	call := &transport.Call{}
	for _, d := range all {
		d.giveUp(call)
	}
	dq.engine.Transport.Start(call, func(_ any, err error) { dq.sent(all, err) })
}

// sent takes in the outcome of a call. What may succeed later is tried again by calls for
// several, or many owners that left while Redis was away would take long.
func (dq *dequeuer) sent(all []*departure, err error) {
	all = dq.tell(all, err)
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
				dq.engine.Logger.Info("redlatch: open outcome settled", "lock", d.name, "owner", d.owner(), "was_held", false)
			}
			d.over()
		}
		dq.engine.Leave()
	}
}

// tell ends those that are told the outcome, and returns the others.
func (dq *dequeuer) tell(all []*departure, err error) (rest []*departure) {
	for _, d := range all {
		if d.tell == nil {
			rest = append(rest, d)
			continue
		}
		d.tell(err)
		dq.engine.Leave()
	}
	return rest
}

// resolve leaves an owner whose call has failed for good to the engine.
func (dq *dequeuer) resolve(d *departure) {
	dq.engine.Resolve(&engine.InDoubt{
		Name: d.name, Owner: d.owner(), Lease: millis(d.request.Lease), Lasts: dq.lasts(&d.request),
		Undo: func(run engine.Run) (bool, error) { _, err := run(d.giveUp); return false, err },
		Done: func(bool) { d.over() },
	})
}

func (dq *dequeuer) sendNext() {
	if next := dq.next(); next != nil {
		dq.send(next)
	}
}

// sendLater puts those back whose call has failed with err, but for those that have failed for
// longer than a place lasts. The call's place is taken by a pause. It returns false when the
// client is closed.
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
				dq.put(d)
				continue
			}
			dq.engine.Logger.Warn("redlatch: open outcome given up", "lock", d.name, "owner", d.owner(),
				"after", now.Sub(d.failed), "error", err)
			d.over()
			dq.engine.Leave()
		}
		dq.engine.Rest(now.Sub(failed))
		dq.sendNext() // which finds out if the client is closed
	})
}
