package board

import (
	"context"
	"sync"
	"time"
)

// lingers is for how long a feed goes on without viewers: a page without JavaScript is loaded
// again after some seconds.
const lingers = 8 * time.Second

// feed has one value for all viewers, which run makes anew again and again until publish
// returns false or ctx ends.
type feed[T any] struct {
	run func(ctx context.Context, publish func(*T) bool)

	mu      sync.Mutex
	value   *T
	changed chan struct{} // closed with the next value
	viewers int
	left    time.Time // when the last viewer left
	running bool
}

// open counts a viewer in. It reports whether the feed must be started, by serve.
func (f *feed[T]) open() (start bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewers++
	if f.running {
		return false
	}
	f.value, f.changed, f.running = nil, make(chan struct{}), true
	return true
}

// close counts a viewer out.
func (f *feed[T]) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewers--
	f.left = time.Now()
}

// serve runs the feed until it is not wanted, or ctx ends.
func (f *feed[T]) serve(ctx context.Context) { f.run(ctx, f.publish) }

// publish gives viewers a new value, and reports whether another is wanted.
func (f *feed[T]) publish(value *T) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value = value
	close(f.changed)
	f.changed = make(chan struct{})
	f.running = f.viewers > 0 || time.Since(f.left) <= lingers
	return f.running
}

// newest returns the newest value, nil before the first one, and what is closed when there is
// another.
func (f *feed[T]) newest() (*T, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value, f.changed
}

// View is the interest of one viewer in a feed, until it is closed. It is safe for concurrent
// use.
type View[T any] struct {
	feed *feed[T]
	end  func()
}

// Close ends the interest. It may be called more than once.
func (v *View[T]) Close() { v.end() }

// Get returns the newest value, waiting for the first one, and a channel that is closed when
// there is another. It returns nil when ctx ends first. The value is shared: it must not be
// changed.
func (v *View[T]) Get(ctx context.Context) (*T, <-chan struct{}) {
	for {
		value, changed := v.feed.newest()
		if value != nil {
			return value, changed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil
		}
	}
}
