package core

import (
	"container/heap"
	"sync"

	"github.com/redlatch/redlatch/transport"
)

const (
	// departing is how many owners leave queues at a time. More would only keep
	// renewals waiting.
	departing = 16
	// fromFront is how often one that stands further in front goes first, so that
	// it is not kept for ever by those that leave behind it.
	fromFront = 8
)

// departures are the owners that are to leave queues on the server, those at the
// end first: then hardly anybody has others behind it whose deadlines change, which
// is what leaving costs.
type departures struct {
	mu       sync.Mutex // guards what follows; held for a few instructions only
	waiting  byPlace
	inFlight int
	begun    int
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
	heap.Push(&ds.waiting, d)
	return false
}

// next ends a departure, and returns the one that is to begin in its place.
func (ds *departures) next() *Doubt {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if len(ds.waiting) == 0 {
		ds.inFlight--
		return nil
	}
	ds.begun++
	i := 0
	if ds.begun%fromFront == 0 {
		i = len(ds.waiting) - 1 // far back in the heap is far in front in the queue
	}
	d, _ := heap.Remove(&ds.waiting, i).(*Doubt) // it is one
	return d
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
// not wait for that; what goes wrong is tried again in the background.
func (e *Engine) Depart(d *Doubt) {
	e.ghosts.add(1)
	if e.departures.begin(d) {
		e.depart(d)
	}
}

func (e *Engine) depart(d *Doubt) {
	call := &transport.Call{}
	d.GiveUp(call)
	e.Transport.Start(call, func(_ any, err error) {
		defer e.ghosts.add(-1)
		if next := e.departures.next(); next != nil {
			e.depart(next)
		}
		if err != nil {
			e.Settle(d)
			return
		}
		d.over()
	})
}
