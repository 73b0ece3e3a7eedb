// Package board keeps what a page shows of a server's locks up to date, for any number of
// viewers: the server gets the commands of one.
//
//	viewers ─▶ Board.Locks ─▶ feed: one scan after the other ─▶ Locks, sorted by trouble
//	viewers ─▶ Board.Numbers ─▶ the same of numbers, which may be semaphores or latches
//	viewers ─▶ Board.Lock  ─▶ feed: one look after the other ─▶ Lock, with its last events
//	viewers ─▶ Board.Server ─▶ feed: an examination every 15 s ─▶ Exam
//
// Locks also have what each client holds and waits for, and the circles of waits: these come from
// the same scan.
//
// A feed runs while viewers ask for its value and for a short time after that; without viewers
// nothing is sent. Scans cost the server what those of redlatch list do: SCAN of 250 keys,
// short commands, and pauses of four times a scan. What a feed has published is not changed
// any more, so that viewers read it without a lock.
//
// A board changes nothing on the server. Its source says where a lock can be repaired.
package board

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

const (
	// LeastEvery is the shortest interval between two scans.
	LeastEvery = 100 * time.Millisecond
	// ExamEvery is the interval between two examinations of the server.
	ExamEvery = 15 * time.Second
	// examTime bounds an examination, and examAgain is the interval after one that failed.
	examTime, examAgain = 10 * time.Second, 5 * time.Second
	// overdue is how much later than expected a new value may be before the last one is old.
	overdue = 5 * time.Second
)

var (
	// ErrClosed says that the board is closed.
	ErrClosed = errors.New("redlatchui: the page is closed")
	// ErrBusy says that as many locks are looked at as can be.
	ErrBusy = errors.New("redlatchui: too many locks are looked at at once: close some of their pages")
)

// Board keeps the state of locks for its viewers. It is safe for concurrent use.
type Board struct {
	// Locks is the feed of all locks, Numbers that of all numbers, which may be semaphores or
	// latches, and Server that of examinations of the server.
	Locks, Numbers *Feed[Locks]
	Server         *Feed[Exam]

	source  *Source
	pattern string
	every   time.Duration
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	once    chan struct{} // has one element for each look at a lock that is not watched
	seen    seen

	mu      sync.Mutex
	closed  bool
	watched map[string]*slot // the locks that are watched, and others that were
}

// Seen says when a value was seen.
type Seen struct {
	// At is when it was seen, zero before. Took is how long that took, and Next when it should have
	// been seen again at the latest.
	At, Next time.Time
	Took     time.Duration
	// Err is why it could not be seen again. The value is the last one that was seen.
	Err error
}

// Old reports whether the value may have changed long since: the last look has failed, or the next
// one has not ended when it should have.
func (s *Seen) Old(now time.Time) bool { return !s.At.IsZero() && (s.Err != nil || now.After(s.Next)) }

// Moment is the time that ages and leases are relative to: now, or for an old value when it was seen.
func (s *Seen) Moment() time.Time {
	if now := time.Now(); !s.Old(now) {
		return now
	}
	return s.At
}

// expect sets Next for a pause until the next look, which takes as long as the last one or twice that.
func (s *Seen) expect(pause, took time.Duration) { s.Next = time.Now().Add(pause + 2*took + overdue) }

// New returns a board of the locks whose names match a pattern, "" for all, with one scan in every
// interval. It sends nothing before it is looked at. Close closes the source.
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

// Close ends all that runs, waits for it, and closes the source.
func (b *Board) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.running.Wait()
	return b.source.Close()
}

// Exam is what an examination of the server has found.
type Exam struct {
	Seen

	// Findings are those of diagnosis.Look.
	Findings []diagnosis.Finding
}

// examine is the feed of examinations.
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
	return b.source.look(ctx)
}

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
