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
	locks, numbers := memory{seen: &b.seen}, memory{seen: &b.seen}
	b.Locks = &Feed[Locks]{board: b, run: func(ctx context.Context, last *Locks, publish func(*Locks) bool) {
		b.scanAgain(ctx, false, &locks, last, publish)
	}}
	b.Numbers = &Feed[Locks]{board: b, run: func(ctx context.Context, last *Locks, publish func(*Locks) bool) {
		b.scanAgain(ctx, true, &numbers, last, publish)
	}}
	b.Server = &Feed[Exam]{board: b, run: b.examine}
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
			exam.Err, pause = b.source.problem(err), examAgain
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
