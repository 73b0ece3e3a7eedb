package core

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"

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
	return false
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
	e.Transport.Start(call, func(_ any, err error) {
		defer e.ghosts.add(-int64(len(all)))
		if next := e.departures.next(); next != nil {
			e.depart(next)
		}
		for _, d := range all {
			if err != nil {
				e.Settle(d)
			} else {
				d.over()
			}
		}
	})
}
