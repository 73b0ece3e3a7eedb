package engine

import "sync"

// Slot is a place that every engine has for the state of one package above it, which the
// engine knows nothing of. Declare it as a package variable.
type Slot[T any] struct {
	// Make returns the state for an engine. It must have no effect until the state is used:
	// of several made at the same time one is kept.
	Make func(e *Engine) T
	// Close, if not nil, runs once when the engine closes and has the state, and when the
	// state is made after that. It must not block.
	Close func(state T)
}

// slots are what an engine has in slots.
type slots struct {
	bySlot sync.Map // of *Slot

	mu     sync.Mutex // guards what follows
	closes []func()
	closed bool
}

// Of returns what an engine has in the slot. It is safe for concurrent use.
func (s *Slot[T]) Of(e *Engine) T {
	value, made := e.slots.bySlot.Load(s)
	if !made {
		var others bool
		value, others = e.slots.bySlot.LoadOrStore(s, s.Make(e))
		made = others
	}
	state, _ := value.(T) // it is one
	if !made && s.Close != nil {
		e.slots.onClose(func() { s.Close(state) })
	}
	return state
}

// onClose runs f when the engine closes.
func (s *slots) onClose(f func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.closes = append(s.closes, f)
	}
	s.mu.Unlock()
	if closed {
		f()
	}
}

func (s *slots) close() {
	s.mu.Lock()
	closes := s.closes
	s.closes, s.closed = nil, true
	s.mu.Unlock()
	for _, f := range closes {
		f()
	}
}
