package engine

import (
	"cmp"
	"container/heap"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/transport"
)

const (
	// departing is how many calls take owners out of queues at a time. Each may
	// take the server some milliseconds, in which a renewal waits behind them all.
	departing = 4
	// together is how many owners leave one queue by one call, at most, or are
	// evicted: a call walks the whole queue, but must not keep the server for long.
	together = 100
	// fromFront is how often those that stand furthest in front are among them, so
	// that they are not kept for ever by those that leave behind them.
	fromFront = 8
)

// departures are the owners that are to leave queues on the server, the queues in
// turn. Of one queue those at the end go first: then hardly anybody has others
// behind it whose deadlines change, which is a part of what leaving costs.
type departures struct {
	mu       sync.Mutex // guards what follows; never held across I/O
	queues   map[string]*exodus
	turns    []*exodus // the next one first
	inFlight int
}

// exodus are the owners that are to leave one queue.
type exodus struct {
	waiting byPlace
	begun   int // calls
}

// begin returns true when a departure may begin now. Otherwise next hands it out
// later.
func (ds *departures) begin(d *Doubt) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.inFlight < departing {
		ds.inFlight++
		return true
	}
	ds.push(d)
	return false
}

// put makes a departure wait, until next hands it out.
func (ds *departures) put(d *Doubt) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.push(d)
}

// push adds to those that wait, mu held.
func (ds *departures) push(d *Doubt) {
	x := ds.queues[d.Queue]
	if x == nil {
		x = &exodus{}
		if ds.queues == nil {
			ds.queues = map[string]*exodus{}
		}
		ds.queues[d.Queue] = x
		ds.turns = append(ds.turns, x)
	}
	heap.Push(&x.waiting, d)
}

// next ends a departure, and returns those that are to begin in its place, by one
// call.
func (ds *departures) next() []*Doubt {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if len(ds.turns) == 0 {
		ds.inFlight--
		return nil
	}
	x := ds.turns[0]
	ds.turns = ds.turns[1:]
	all := x.next()
	if len(x.waiting) > 0 {
		ds.turns = append(ds.turns, x)
	} else {
		delete(ds.queues, all[0].Queue)
	}
	return all
}

// next returns those that leave next.
func (x *exodus) next() []*Doubt {
	x.begun++
	all := make([]*Doubt, 0, min(len(x.waiting), together))
	if x.begun%fromFront == 0 {
		// What is in order is a heap as well.
		slices.SortFunc(x.waiting, func(a, b *Doubt) int { return cmp.Compare(b.Place, a.Place) })
		for len(all) < cap(all) {
			d, _ := x.waiting.Pop().(*Doubt) // it is one
			all = append(all, d)
		}
		return all
	}
	for len(all) < cap(all) {
		d, _ := heap.Pop(&x.waiting).(*Doubt) // it is one
		all = append(all, d)
	}
	return all
}

// byPlace is a heap with the last place on top.
type byPlace []*Doubt

func (b byPlace) Len() int           { return len(b) }
func (b byPlace) Less(i, j int) bool { return b[i].Place > b[j].Place }
func (b byPlace) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

// Push is part of heap.Interface.
func (b *byPlace) Push(x any) {
	d, _ := x.(*Doubt) // it is one
	*b = append(*b, d)
}

// Pop is part of heap.Interface.
func (b *byPlace) Pop() any {
	last := len(*b) - 1
	d := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return d
}

// Depart takes an owner that waits no more out of a queue on the server. It does
// not wait for that; what goes wrong is tried again in the background. When many
// leave one queue, one call takes several out.
func (e *Engine) Depart(d *Doubt) {
	e.ghosts.add(1)
	if e.departures.begin(d) {
		e.depart([]*Doubt{d})
	}
}

func (e *Engine) depart(all []*Doubt) {
	call := &transport.Call{}
	for _, d := range all {
		d.GiveUp(call)
	}
	e.Transport.Start(call, func(_ any, err error) { e.departed(all, err) })
}

// departed takes in the outcome of a call. What may succeed later is tried again by
// calls for several, or a crowd that left while Redis was away would take long.
func (e *Engine) departed(all []*Doubt, err error) {
	if err != nil && retryable(err) && !errors.Is(err, ErrClosed) && e.departLater(all, err) {
		return
	}
	e.departNext()
	for _, d := range all {
		switch {
		case err != nil:
			e.Settle(d)
		default:
			if !d.failed.IsZero() {
				e.Logger.Info("redlatch: open outcome settled", "lock", d.Name, "owner", d.Owner, "was_held", false)
			}
			d.over()
		}
	}
	e.ghosts.add(-int64(len(all)))
}

func (e *Engine) departNext() {
	if next := e.departures.next(); next != nil {
		e.depart(next)
	}
}

// departLater puts those back whose call has failed with err, but for those that
// have failed for longer than a place lasts. The call's place is taken by a pause. It
// returns false when the client is closed.
func (e *Engine) departLater(all []*Doubt, err error) bool {
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
	return e.spawn(func() {
		for _, d := range all {
			if now.Sub(d.failed) <= e.lasts(d) {
				e.departures.put(d)
				continue
			}
			e.Logger.Warn("redlatch: open outcome given up", "lock", d.Name, "owner", d.Owner,
				"after", now.Sub(d.failed), "error", err)
			d.over()
			e.ghosts.add(-1)
		}
		e.rest(now.Sub(failed))
		e.departNext() // which finds out if the client is closed
	})
}

// lasts returns for how long a place in a queue may stand in the others' way: not the
// lease, which may be short, but the wait of those that have none of their own.
func (e *Engine) lasts(d *Doubt) time.Duration { return max(d.Lease, e.FairWait) }
