package engine

import "sync"

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
