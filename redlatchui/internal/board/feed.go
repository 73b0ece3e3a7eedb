package board

import (
	"context"
	"sync"
	"time"
)

// lingers is for how long a feed goes on without viewers: a page without JavaScript is loaded
// again after some seconds.
const lingers = 8 * time.Second

// quiet is after how long without a new value viewers look at the last one again: it grows old.
const quiet = 3 * time.Second

// feed has one value for all viewers, which run makes anew again and again until publish
// returns false or ctx ends.
type feed[T any] struct {
	run func(ctx context.Context, publish func(*T) bool)

	mu      sync.Mutex
	value   *T
	before  *T            // what viewers saw last before it was started again, some minutes ago at most
	changed chan struct{} // closed with the next value, or when the last grows old
	viewers int
	left    time.Time // when the last viewer left
	woken   time.Time // when viewers had something to look at last
	running bool
	ended   bool // it was evicted
	cancel  context.CancelFunc
}

// open counts a viewer in. It reports whether the feed must be started, by serve.
func (f *feed[T]) open() (start bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewers++
	if f.running {
		return false
	}
	if f.value != nil {
		f.before, f.value = f.value, nil
	}
	if !f.left.IsZero() && time.Since(f.left) > remembers {
		f.before = nil
	}
	f.changed, f.running, f.woken = make(chan struct{}), true, time.Now()
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
func (f *feed[T]) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	f.mu.Lock()
	if f.cancel = cancel; f.ended {
		cancel()
	}
	f.mu.Unlock()
	var waking sync.WaitGroup
	waking.Go(func() { f.wakeAgain(ctx) })
	f.run(ctx, f.publish)
	cancel()
	waking.Wait()
}

// wakeAgain wakes viewers when there is no new value for long: a server that does not answer must
// not look as one on which nothing happens.
func (f *feed[T]) wakeAgain(ctx context.Context) {
	every := time.NewTicker(quiet / 3)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			f.mu.Lock()
			if time.Since(f.woken) >= quiet {
				f.wake()
			}
			f.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// evict ends the feed for all viewers. It is not opened again.
func (f *feed[T]) evict() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake()
	f.ended, f.running, f.changed = true, false, nil
	if f.cancel != nil {
		f.cancel()
	}
}

// wake wakes the viewers. The feed is locked.
func (f *feed[T]) wake() {
	if f.ended {
		return
	}
	close(f.changed)
	f.changed, f.woken = make(chan struct{}), time.Now()
}

// publish gives viewers a new value, and reports whether another is wanted.
func (f *feed[T]) publish(value *T) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	f.value = value
	f.wake()
	f.running = f.viewers > 0 || time.Since(f.left) <= lingers
	return f.running
}

// newest returns the newest value, nil before the first one, and what is closed when there is
// another, nil when there will be none. With late it returns one from before the feed was started
// again where there is no newer one.
func (f *feed[T]) newest(late bool) (*T, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if late && f.value == nil {
		return f.before, f.changed
	}
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
// there is another, or this one grows old, nil when there will be none. When the first one does not
// come soon, it returns what was seen last, before there were no viewers, if that is known. It
// returns nil when ctx ends first. The value is shared: it must not be changed.
func (v *View[T]) Get(ctx context.Context) (*T, <-chan struct{}) {
	for late := false; ; late = true {
		value, changed := v.feed.newest(late)
		if value != nil || changed == nil {
			return value, changed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil
		}
	}
}
