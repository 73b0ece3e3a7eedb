package otelredlatch

import (
	"maps"
	"sync"
	"sync/atomic"
)

// cache has what was made once for each of a few keys. To read it takes no lock and allocates
// nothing.
type cache[K comparable, V any] struct {
	mu   sync.Mutex // held to add
	have atomic.Pointer[map[K]V]
}

// all returns what there is. It must not be changed.
func (c *cache[K, V]) all() map[K]V {
	if have := c.have.Load(); have != nil {
		return *have
	}
	return nil
}

// add returns the value of a key, which make makes when there is none.
func (c *cache[K, V]) add(key K, make func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, known := c.all()[key]; known {
		return v
	}
	next := maps.Clone(c.all())
	if next == nil {
		next = map[K]V{}
	}
	next[key] = make()
	c.have.Store(&next)
	return next[key]
}
