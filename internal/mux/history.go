package mux

import "sync"

// identity is what the server calls a connection of ours.
type identity struct {
	id   int64  // CLIENT ID, 0 when not known
	name int64  // the id, with the Mux's tag: what calls say that they were sent on
	addr string // addr in CLIENT INFO, "" when not known

	// What the server said when it refused to tell, "" when it did not refuse.
	noID, noAddr string
}

// historySize is how many connections are remembered. A call that stays in doubt
// longer than so many reconnects cannot be fenced any more.
const historySize = 64

// history remembers the connections: the present one and those before it.
type history struct {
	mu          sync.Mutex // guards what follows; held for a few instructions only
	current     *link      // nil when disconnected
	past        []identity // the latest historySize of them, the present one included
	reconnected chan struct{}
	lost        chan struct{}
}

func (r *history) init() { r.reconnected, r.lost = make(chan struct{}), make(chan struct{}) }

// enter makes l the present connection and reports whether there were others
// before it.
func (r *history) enter(l *link) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = l
	again = len(r.past) > 0
	if len(r.past) == historySize {
		r.past = append(r.past[:0], r.past[1:]...)
	}
	r.past = append(r.past, l.who)
	if again {
		close(r.reconnected)
		r.reconnected = make(chan struct{})
	}
	return again
}

// leave says that there is no connection any more.
func (r *history) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = nil
	close(r.lost)
	r.lost = make(chan struct{})
}

// present returns the present connection, nil if there is none.
func (r *history) present() *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// nextLost returns a channel that is closed when a connection is lost.
func (r *history) nextLost() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

func (r *history) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reconnected
}

// latest returns the connection that was made last, the zero identity if none was.
func (r *history) latest() identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.past) == 0 {
		return identity{}
	}
	return r.past[len(r.past)-1]
}

// find returns the latest connection of this name, and whether it still works.
func (r *history) find(name int64) (who identity, live, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.current; c != nil && c.who.name == name && !c.failed() {
		return c.who, true, true
	}
	for i := len(r.past) - 1; i >= 0; i-- {
		if r.past[i].name == name {
			return r.past[i], false, true
		}
	}
	return identity{}, false, false
}
