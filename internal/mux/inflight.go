package mux

import (
	"sync"
	"time"
)

// inflight holds the calls written to a connection, or about to be, in the order
// in which the server will answer them. The run goroutine adds, the reader
// removes, the guard looks.
type inflight struct {
	mu    sync.Mutex // guards what follows; held for a few instructions only
	calls ring[entry]
}

func (f *inflight) push(e entry) {
	f.mu.Lock()
	f.calls.pushBack(e)
	f.mu.Unlock()
}

// pop removes the oldest call; ok is false when there is none.
func (f *inflight) pop() (e entry, ok bool) {
	f.mu.Lock()
	if ok = f.calls.len() > 0; ok {
		e = f.calls.popFront()
	}
	f.mu.Unlock()
	return e, ok
}

func (f *inflight) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls.len()
}

// oldest returns when the oldest call was put in; ok is false when there is none.
func (f *inflight) oldest() (at time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls.len() == 0 {
		return 0, false
	}
	return f.calls.front().at, true
}
