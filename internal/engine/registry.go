package engine

import "sync"

// Registry shares values among those who use the same key at a time. The zero
// value is ready.
type Registry struct {
	mu    sync.Mutex // guards byKey
	byKey map[any]*registered
}

type registered struct {
	value any
	users int
}

// Join returns the value for key, which make makes for the first of its users.
// Each Join needs a [Registry.Leave].
func (r *Registry) Join(key any, make func() any) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.byKey[key]
	if entry == nil {
		entry = &registered{value: make()}
		if r.byKey == nil {
			r.byKey = map[any]*registered{}
		}
		r.byKey[key] = entry
	}
	entry.users++
	return entry.value
}

// Leave ends one use of the key's value, and with the last one forgets it.
func (r *Registry) Leave(key any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.byKey[key]; entry != nil {
		if entry.users--; entry.users == 0 {
			delete(r.byKey, key)
		}
	}
}
