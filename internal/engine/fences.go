package engine

import (
	"sync"
	"time"
)

// fenceMemory is how long the result of a fence is kept for other doubts about
// calls of the same connection.
const fenceMemory = time.Second

// fences lets the doubts about one connection share one fence. The zero value
// is ready.
type fences struct {
	mu   sync.Mutex // guards byID; not held while a fence runs
	byID map[int64]*fence
}

type fence struct {
	done  chan struct{}
	ok    bool // read after done is closed
	ended time.Time
}

// do runs kill once for all callers that ask about conn at about the same
// time, and returns whether the connection is gone. A success is final, a
// failure may be tried again after a while.
func (f *fences) do(conn int64, kill func() bool) bool {
	f.mu.Lock()
	one := f.byID[conn]
	if one == nil || one.stale() {
		one = &fence{done: make(chan struct{})}
		f.put(conn, one)
		f.mu.Unlock()
		one.ok = kill()
		one.ended = time.Now()
		close(one.done)
		return one.ok
	}
	f.mu.Unlock()
	<-one.done
	return one.ok
}

// put remembers a fence, mu held, and forgets old ones.
func (f *fences) put(conn int64, one *fence) {
	if f.byID == nil {
		f.byID = map[int64]*fence{}
	}
	for id, old := range f.byID {
		if old.stale() {
			delete(f.byID, id)
		}
	}
	f.byID[conn] = one
}

// stale reports whether a fence ended so long ago that it should be set again.
func (f *fence) stale() bool {
	select {
	case <-f.done:
		return time.Since(f.ended) > fenceMemory
	default:
		return false
	}
}
