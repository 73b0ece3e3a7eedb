// Package board keeps the state of a server's locks up to date for any number of viewers at the
// cost of one viewer. It does not write anything to the server. A Feed runs while viewers request
// its value and for a few seconds afterwards. Otherwise it does not send any commands. Published
// values are immutable.
package board

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

const (
	// LeastEvery is the shortest interval between two scans.
	LeastEvery = 100 * time.Millisecond
	// ExamEvery is the interval between two examinations of the server.
	ExamEvery           = 15 * time.Second
	examTime, examAgain = 10 * time.Second, 5 * time.Second
	// overdue is how late a new value may be before the last one counts as old.
	overdue = 5 * time.Second
)

var (
	// ErrClosed is returned if the board is closed.
	ErrClosed = errors.New("redlatchui: the page is closed")
	// ErrBusy is returned if too many locks are being watched.
	ErrBusy = errors.New("redlatchui: too many locks are being watched: close some pages")
)

// Board keeps the state of locks for its viewers. It is safe for concurrent use.
type Board struct {
	Locks, Numbers *Feed[Locks]
	Server         *Feed[Exam]

	source  *Source
	pattern string
	every   time.Duration
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	once    chan struct{} // limits the concurrent calls to LookOnce
	seen    seen

	mu      sync.Mutex
	closed  bool
	prefers func(a, b Entry) int // nil for ByTrouble
	watched map[string]*slot     // by name; includes feeds that have stopped
}

// Seen describes when a value was seen.
type Seen struct {
	// At is when the value was last seen, or zero if it has not been seen. Took is how long the
	// look took. The next look is due by Next.
	At, Next time.Time
	Took     time.Duration
	Err      error
}

// Old reports whether the value is out of date, because the last look failed or the next one is
// overdue.
func (s *Seen) Old(now time.Time) bool { return !s.At.IsZero() && (s.Err != nil || now.After(s.Next)) }

// Moment returns the time to which ages and leases are relative.
func (s *Seen) Moment() time.Time {
	if now := time.Now(); !s.Old(now) {
		return now
	}
	return s.At
}

func (s *Seen) expect(pause, took time.Duration) { s.Next = time.Now().Add(pause + 2*took + overdue) }

// New returns a board for the locks whose names match pattern. Closing the board also closes the source.
func New(source *Source, pattern string, every time.Duration) *Board {
	b := &Board{source: source, pattern: pattern, every: every, once: make(chan struct{}, looksAtOnce), watched: map[string]*slot{}}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	scans := func(numbers bool) *Feed[Locks] {
		m := memory{seen: &b.seen}
		return &Feed[Locks]{board: b, run: func(ctx context.Context, last *Locks, publish func(*Locks) bool) {
			b.scanAgain(ctx, numbers, &m, last, publish)
		}}
	}
	b.Locks, b.Numbers, b.Server = scans(false), scans(true), &Feed[Exam]{board: b, run: b.examine}
	return b
}

// Prefer makes the next scans keep the first locks in the given order if not all can be kept. The default is
// ByTrouble. The order must be safe for concurrent use.
func (b *Board) Prefer(order func(a, b Entry) int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prefers = order
}

func (b *Board) order() func(a, b Entry) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.prefers == nil {
		return ByTrouble
	}
	return b.prefers
}

// Close waits for all feeds and closes the source.
func (b *Board) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.running.Wait()
	return b.source.Close()
}

// Exam is the result of an examination.
type Exam struct {
	Seen

	Findings []diagnosis.Finding
}

func (b *Board) examine(ctx context.Context, last *Exam, publish func(*Exam) bool) {
	exam := Exam{}
	if last != nil {
		exam = *last
	}
	for {
		began, pause := time.Now(), ExamEvery
		findings, err := b.examineOnce(ctx)
		if err == nil {
			exam = Exam{Seen: Seen{At: time.Now(), Took: time.Since(began)}, Findings: findings}
		} else {
			exam.Err, pause = b.source.Problem(err), examAgain
		}
		exam.expect(ExamEvery, exam.Took)
		if value := exam; !publish(&value) || inspect.Pause(ctx, pause) != nil {
			return
		}
	}
}

func (b *Board) examineOnce(ctx context.Context) ([]diagnosis.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, examTime)
	defer cancel()
	masters, err := b.source.masters(ctx)
	if err != nil {
		return nil, err
	}
	return diagnosis.Look(ctx, masters, b.source.client, b.source.cluster)
}

const (
	// lingers is how long a feed runs after the last request. Pages without JavaScript reload within this time.
	lingers = 8 * time.Second
	// quiet is how long a viewer waits for a new value before getting the last one.
	quiet = 3 * time.Second
	// remembers is how long a board keeps its state after the last viewer has left.
	remembers = 5 * time.Minute
)

// Feed shares its values with all viewers. It is safe for concurrent use.
type Feed[T any] struct {
	board *Board
	// run creates values until ctx ends or publish returns false. last may be nil.
	run func(ctx context.Context, last *T, publish func(*T) bool)

	// board.mu guards the following fields.
	value   *T
	fresh   bool // the current run has created value
	changed chan struct{}
	asked   time.Time
	running bool
	ended   bool
	cancel  context.CancelFunc
}

// Get returns the newest value, and a channel that is closed when a newer one is available. Both are nil if the feed
// was evicted. If the server is slow, the value is the last known one, or nil if ctx ends first.
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

// newest returns the newest value. Unless late is set, the current run must have created it.
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

// start starts the feed unless it is running. board.mu must be held.
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

func (f *Feed[T]) begin() (last *T, wanted bool) {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	f.fresh, f.running = false, f.isWanted()
	return f.value, f.running
}

// isWanted reports whether viewers want another value. board.mu must be held.
func (f *Feed[T]) isWanted() bool {
	return f.board.ctx.Err() == nil && !f.ended && time.Since(f.asked) <= lingers
}

// publish reports whether viewers want another value.
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

// evict ends the feed. board.mu must be held.
func (f *Feed[T]) evict() {
	f.ended = true
	close(f.changed)
	f.cancel()
}

const (
	// watchedLocks limits the number of locks being watched. keptLocks also counts locks that were
	// watched before.
	watchedLocks, keptLocks = 64, 5 * watchedLocks
	looksAtOnce             = 4
)

type slot struct {
	Feed[Lock]

	name   string
	opened time.Time
	from   string // address of the viewer who opened it
}

// Lock returns the feed of a lock for a viewer at the address from. If too many locks are watched, it may return
// ErrBusy.
func (b *Board) Lock(name, from string) (*Feed[Lock], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.watched[name]
	switch {
	case b.closed:
		return nil, ErrClosed
	case s != nil && s.running:
		return &s.Feed, nil
	case !b.makeRoom(from):
		return nil, ErrBusy
	case s == nil:
		w := b.watcher(name)
		s = &slot{Feed: Feed[Lock]{board: b, run: w.watch}, name: name}
		b.watched[name] = s
	}
	s.opened, s.from = time.Now(), from
	s.start()
	b.forget()
	return &s.Feed, nil
}

// makeRoom reports whether another lock can be watched. If necessary, it evicts an idle name of a viewer with at
// least as many locks, or any lock of a viewer with at least two more. b.mu must be held.
func (b *Board) makeRoom(from string) bool {
	counts, running := map[string]int{}, []*slot(nil)
	for _, s := range b.watched {
		if s.running {
			counts[s.from]++
			running = append(running, s)
		}
	}
	if len(running) < watchedLocks {
		return true
	}
	isIdle := func(s *slot) bool { return s.value != nil && s.value.Idle() && counts[s.from] >= counts[from] }
	running = slices.DeleteFunc(running, func(s *slot) bool { return !isIdle(s) && counts[s.from] <= counts[from]+1 })
	if len(running) == 0 {
		return false
	}
	victim := slices.MinFunc(running, func(a, b *slot) int {
		return cmp.Or(btoi(isIdle(b))-btoi(isIdle(a)), cmp.Compare(counts[b.from], counts[a.from]), a.opened.Compare(b.opened))
	})
	victim.evict()
	delete(b.watched, victim.name)
	return true
}

// forget drops the least recently requested slot if there are too many. b.mu must be held.
func (b *Board) forget() {
	if len(b.watched) <= keptLocks {
		return
	}
	oldest := ""
	for name, s := range b.watched {
		if !s.running && (oldest == "" || s.asked.Before(b.watched[oldest].asked)) {
			oldest = name
		}
	}
	delete(b.watched, oldest)
}

// LookOnce looks at a lock but does not watch it. It returns nil if ctx ends first.
func (b *Board) LookOnce(ctx context.Context, name string) (*Lock, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, ErrClosed
	}
	b.running.Add(1)
	b.mu.Unlock()
	defer b.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	select {
	case b.once <- struct{}{}:
	case <-ctx.Done():
		return nil, nil //nolint:nilnil // like Feed.Get
	}
	began := time.Now()
	w := b.watcher(name)
	defer w.disconnect()
	l := w.first(ctx)
	time.AfterFunc(inspect.PauseFactor*min(time.Since(began), lookEvery), func() { <-b.once })
	l.expect(0, 0)
	return l, nil
}
