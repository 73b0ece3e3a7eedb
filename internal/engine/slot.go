package engine

import (
	"sync"
)

// EngineOf returns the engine inside a *redlatch.Client. The root package sets
// it when it is initialised, so that the kinds of lock reach the engine without
// a method for it on the public Client.
var EngineOf func(client any) *Engine

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

// Registry shares values among those that use the same key at a time. The zero value is
// ready.
type Registry[K comparable, V any] struct {
	mu    sync.Mutex // guards byKey
	byKey map[K]*registered[V]
}

type registered[V any] struct {
	value V
	users int
}

// Join returns the value for key, which make makes for the first of its users. Each Join
// needs a [Registry.Leave].
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

// Leave ends one use of the key's value, and with the last one forgets it.
func (r *Registry[K, V]) Leave(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.byKey[key]; entry != nil {
		if entry.users--; entry.users == 0 {
			delete(r.byKey, key)
		}
	}
}
