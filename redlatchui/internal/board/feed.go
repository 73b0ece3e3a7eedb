package board

import (
	"context"
	"time"
)

const (
	// lingers is for how long a feed goes on after a viewer has asked for its value: a page without
	// JavaScript is loaded again after some seconds.
	lingers = 8 * time.Second
	// quiet is for how long a viewer waits for a new value before it gets the last one.
	quiet = 3 * time.Second
	// remembers is for how long after the last viewer a board keeps what it has seen.
	remembers = 5 * time.Minute
)

// Feed has one value for all viewers, which is made again and again while they ask for it. It is
// safe for concurrent use.
type Feed[T any] struct {
	board *Board
	// run makes values, the first one from the last that is known, nil if none is. It ends with ctx,
	// or when publish returns false.
	run func(ctx context.Context, last *T, publish func(*T) bool)

	// The board's mutex guards the rest.
	value   *T
	fresh   bool // whether run has made the value, and has not ended since
	changed chan struct{}
	asked   time.Time // when a viewer asked last
	running bool
	ended   bool // the feed was evicted
	cancel  context.CancelFunc
}

// Get returns the newest value, and a channel that is closed when there is a newer one. It waits for
// a value, but if the server does not answer soon, it returns the last one that was seen before, if
// there is one. If ctx ends first, the value is nil. The channel is nil if the value gets no newer:
// the lock is not watched any more. The value is shared: it must not be changed.
func (f *Feed[T]) Get(ctx context.Context) (*T, <-chan struct{}, error) {
	for late := false; ; {
		value, changed, err := f.newest(late)
		if value != nil || changed == nil || err != nil {
			return value, changed, err
		}
		select {
		case <-changed:
		case <-time.After(quiet):
			late = true
		case <-ctx.Done():
			return nil, changed, nil
		}
	}
}

// newest returns the newest value of this run of the feed, or with late one from before if there is no
// newer one. It starts the feed if it does not run.
func (f *Feed[T]) newest(late bool) (*T, <-chan struct{}, error) {
	b := f.board
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, nil, ErrClosed
	case f.ended:
		return nil, nil, nil
	}
	f.start()
	if f.fresh || late {
		return f.value, f.changed, nil
	}
	return nil, f.changed, nil
}

// start starts the feed if it does not run. The board is locked.
func (f *Feed[T]) start() {
	now := time.Now()
	if now.Sub(f.asked) > remembers {
		f.value = nil
	}
	f.asked = now
	if f.running {
		return
	}
	ctx, cancel := context.WithCancel(f.board.ctx)
	f.running, f.changed, f.cancel = true, make(chan struct{}), cancel
	f.board.running.Go(func() {
		defer cancel()
		for last, wanted := f.begin(); wanted; last, wanted = f.begin() {
			f.run(ctx, last, f.publish)
		}
	})
}

// begin returns the last value, and reports whether another one is wanted. If not, the feed stops.
func (f *Feed[T]) begin() (last *T, wanted bool) {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	f.fresh, f.running = false, f.isWanted()
	return f.value, f.running
}

// isWanted reports whether a new value is wanted. The board is locked.
func (f *Feed[T]) isWanted() bool {
	return f.board.ctx.Err() == nil && !f.ended && time.Since(f.asked) <= lingers
}

// publish gives viewers a new value, and reports whether another one is wanted.
func (f *Feed[T]) publish(value *T) bool {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	if f.ended {
		return false
	}
	close(f.changed)
	f.value, f.fresh, f.changed = value, true, make(chan struct{})
	return f.isWanted()
}

// evict ends the feed for all viewers. The board is locked.
func (f *Feed[T]) evict() {
	f.ended = true
	close(f.changed)
	f.cancel()
}
