package board

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// ExamEvery is how often a server that is looked at is examined, at most.
const ExamEvery = 15 * time.Second

const (
	// examTime bounds an examination.
	examTime = 10 * time.Second
	// examAgain is how soon one that failed is made again.
	examAgain = 5 * time.Second
)

// Exam is what an examination of the server has found.
type Exam struct {
	// At is when it ended, Took how long it took.
	At   time.Time
	Took time.Duration
	// Findings are those of diagnosis.Look.
	Findings []diagnosis.Finding
	// Err is why the last one failed. All else is of the one before.
	Err error
	// Next is when the next one should have ended at the latest.
	Next time.Time
}

// Old reports whether the server may have changed long since: the last examination has failed, or
// the next one has not ended when it should have.
func (e *Exam) Old(now time.Time) bool { return !e.At.IsZero() && (e.Err != nil || now.After(e.Next)) }

// Server begins to look at the server. The view must be closed.
func (b *Board) Server() (*View[Exam], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return open(b, &b.exams, func() {})
}

// examine is the feed of examinations.
func (b *Board) examine(ctx context.Context, publish func(*Exam) bool) {
	last := &b.examined
	if time.Since(last.At) > remembers {
		last = &Exam{}
	}
	for ctx.Err() == nil {
		last = b.examineOnce(ctx, last)
		last.Next = time.Now().Add(ExamEvery + 2*last.Took + overdue)
		b.examined = *last
		if ctx.Err() != nil || !publish(last) {
			return
		}
		pause := ExamEvery
		if last.Err != nil {
			pause = examAgain
		}
		if inspect.Pause(ctx, pause) != nil {
			return
		}
	}
}

func (b *Board) examineOnce(ctx context.Context, last *Exam) *Exam {
	ctx, cancel := context.WithTimeout(ctx, examTime)
	defer cancel()
	began := time.Now()
	findings, err := b.Source.look(ctx)
	if err != nil {
		failed := *last
		failed.Err = b.Source.problem(err)
		return &failed
	}
	return &Exam{At: time.Now(), Took: time.Since(began), Findings: findings}
}
