package engine

import (
	"sync"
)

// EngineOf returns the engine of a *redlatch.Client. Package redlatch sets it.
var EngineOf func(client any) *Engine

// Slot stores one value for each engine: the state of a package that uses it. Declare it as a package variable.
type Slot[T any] struct {
	// Make must be pure. It may run concurrently, and then only one result is kept.
	Make func(e *Engine) T
	// Close, if not nil, is called once with the value when the engine closes, or as soon as the value is made if that is
	// later. It must not block.
	Close func(state T)
}

type slots struct {
	bySlot sync.Map

	mu     sync.Mutex // guards the fields below
	closes []func()
	closed bool
}

// Of returns the value for e. It is safe for concurrent use.
func (s *Slot[T]) Of(e *Engine) T {
	value, made := e.slots.bySlot.Load(s)
	if !made {
		var others bool
		value, others = e.slots.bySlot.LoadOrStore(s, s.Make(e))
		made = others
	}
	state, _ := value.(T)
	if !made && s.Close != nil {
		e.slots.onClose(func() { s.Close(state) })
	}
	return state
}

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

// Registry shares one value among the concurrent users of a key. The zero Registry is ready to use.
type Registry[K comparable, V any] struct {
	mu    sync.Mutex // guards byKey
	byKey map[K]*registered[V]
}

type registered[V any] struct {
	value V
	users int
}

// Join returns the value for key, which make creates for the first user. Each Join must be paired with a
// [Registry.Leave].
func (r *Registry[K, V]) Join(key K, make func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.byKey[key]
	if entry == nil {
		entry = &registered[V]{value: make()}
		if r.byKey == nil {
			r.byKey = map[K]*registered[V]{}
		}
		r.byKey[key] = entry
	}
	entry.users++
	return entry.value
}

// Leave ends one use of the key. When the last use ends, the value is removed.
func (r *Registry[K, V]) Leave(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.byKey[key]; entry != nil {
		if entry.users--; entry.users == 0 {
			delete(r.byKey, key)
		}
	}
}
