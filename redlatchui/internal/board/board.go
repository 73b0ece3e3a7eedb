package board

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// LeastEvery is the least time between two scans that may be asked for.
	LeastEvery = 100 * time.Millisecond
	// watchedLocks is how many locks are watched at once, at most.
	watchedLocks = 64
)

var (
	// ErrClosed says that the board is closed.
	ErrClosed = errors.New("redlatchui: the page is closed")
	// ErrBusy says that as many locks are looked at as can be.
	ErrBusy = errors.New("redlatchui: too many locks are looked at at once: close some of their pages")
)

// Config is what a board shows, and how often it looks.
type Config struct {
	// Source is where the locks are. The board closes it.
	Source *Source
	// Pattern is what names must match, "" for all.
	Pattern string
	// Every is the least time between two scans, LeastEvery at least.
	Every time.Duration
}

// Board keeps the state of locks for its viewers. It is safe for concurrent use.
type Board struct {
	Config

	ctx    context.Context
	cancel context.CancelFunc
	locks  feed[Locks]
	counts feed[Locks]
	exams  feed[Exam]
	seen   seen
	// What the scans of one feed leave for those of the next, each for that feed alone.
	locksMemory, countsMemory memory
	examined                  Exam

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	watched map[string]*slot
	idle    map[string]*watcher // of locks that are not watched now
	once    chan struct{}       // has one element for each look at a lock that is not watched
}

// New returns a board. It sends nothing before it is looked at.
func New(cfg Config) *Board {
	cfg.Every = max(cfg.Every, LeastEvery)
	b := &Board{Config: cfg, watched: map[string]*slot{}, once: make(chan struct{}, looksAtOnce), idle: map[string]*watcher{}}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.locks.run = func(ctx context.Context, publish func(*Locks) bool) { b.scanAgain(ctx, false, &b.locksMemory, publish) }
	b.counts.run = func(ctx context.Context, publish func(*Locks) bool) { b.scanAgain(ctx, true, &b.countsMemory, publish) }
	b.exams.run = b.examine
	return b
}

// Close ends all that runs, waits for it, and closes the source.
func (b *Board) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.running.Wait()
	return b.Source.Close()
}

// Locks begins to look at all locks. The view must be closed.
func (b *Board) Locks() (*View[Locks], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return open(b, &b.locks, func() {})
}

// Numbers begins to look at all numbers, which may be semaphores or latches, in place of the locks.
// The view must be closed.
func (b *Board) Numbers() (*View[Locks], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return open(b, &b.counts, func() {})
}

// open counts a viewer of a feed in, which is started when it does not run. It runs ended
// when the feed has stopped. The board is locked.
func open[T any](b *Board, f *feed[T], ended func()) (*View[T], error) {
	if b.closed {
		return nil, ErrClosed
	}
	if f.open() {
		b.running.Go(func() {
			f.serve(b.ctx)
			ended()
		})
	}
	return &View[T]{feed: f, end: sync.OnceFunc(f.close)}, nil
}
