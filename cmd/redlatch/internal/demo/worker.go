package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/conn"
	"github.com/redlatch/redlatch/rlock"
)

// WorkerCommand is the hidden command that runs [Work].
const WorkerCommand = "__demo-worker"

// worker is one contender, a process of its own.
type worker struct {
	cfg   workerConfig
	out   *json.Encoder
	stall atomic.Bool
	enter func(ctx context.Context) (*visit, error)
	book  *book
	wait  time.Duration // how long the last acquisition took
}

// Observe is part of redlatch.Observer. Acquisitions are told on the goroutine
// that makes them, which is the one that does the rounds.
func (w *worker) Observe(e redlatch.Event) {
	if a, ok := e.(redlatch.Acquired); ok {
		w.wait = a.Wait
	}
}

// Work is the program of a worker process. It takes its orders from in and
// reports to out. It ends when it is told to, and at once when in ends.
func Work(in io.Reader, out io.Writer) error {
	// Ctrl-C reaches the whole terminal; it is the parent's to deal with.
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	w := &worker{out: json.NewEncoder(out)}
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s is started by redlatch demo, not by hand", WorkerCommand)
	}
	if err := json.Unmarshal(first, &w.cfg); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		if !w.obey(lines) {
			os.Exit(1) // nothing may keep a worker alive without its parent
		}
		cancel()
		w.obey(lines) // until the parent is gone or lets us go
		os.Exit(1)
	}()
	if err := w.work(ctx); err != nil && ctx.Err() == nil {
		w.emit(&event{Kind: failed, Text: err.Error()})
		return err
	}
	return nil
}

// obey reads orders. It returns true when that is to stop, and false when the
// parent has died.
func (w *worker) obey(lines *bufio.Reader) bool {
	for {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil:
			return false
		case line == stallOrder:
			w.stall.Store(true)
		case line == stopOrder:
			return true
		}
	}
}

// emit reports. A parent that does not listen any more has closed our input too.
func (w *worker) emit(e *event) {
	e.At = time.Now()
	_ = w.out.Encode(e)
}

// work connects and does rounds until ctx ends.
func (w *worker) work(ctx context.Context) error {
	c, err := conn.Dial(ctx, w.cfg.Redis)
	if err != nil {
		return fmt.Errorf("%s", conn.Problem(w.cfg.Redis, err))
	}
	defer func() { _ = c.Close() }() // nothing is buffered
	w.book = &book{conn: c, keys: keysOf(w.cfg.Prefix), id: w.cfg.ID}
	client, err := redlatch.Open(ctx, w.cfg.Redis, redlatch.WithWatchdogTimeout(w.cfg.Lease), redlatch.WithObserver(w))
	if err != nil {
		return fmt.Errorf("%s", conn.Problem(w.cfg.Redis, err))
	}
	defer func() { _ = client.Close() }() // all holds have been given up
	w.enter = throughLock(rlock.New(client, w.book.keys.lock))
	if w.cfg.Broken {
		w.enter = throughWall(w.cfg.ID)
	}
	w.emit(&event{Kind: ready})
	for ctx.Err() == nil {
		if err := w.round(ctx); err != nil {
			return err
		}
		pause(ctx, 5*time.Millisecond, 15*time.Millisecond)
	}
	return nil
}

// round takes the lock once.
func (w *worker) round(ctx context.Context) error {
	w.emit(&event{Kind: waiting})
	v, err := w.enter(ctx)
	if err != nil {
		return err
	}
	w.emit(&event{Kind: acquired, Owner: v.owner, Wait: w.wait})
	err = w.inside(ctx, v)
	if leaveErr := v.leave(); leaveErr != nil {
		w.emit(&event{Kind: lost, Owner: v.owner})
	}
	return err
}

// inside is the critical section.
func (w *worker) inside(ctx context.Context, v *visit) error {
	if err := w.mark(v); err != nil {
		return err
	}
	n, err := w.book.read()
	if err != nil {
		return err
	}
	if w.stall.Load() {
		w.emit(&event{Kind: stalled, Owner: v.owner})
		<-ctx.Done() // killed before that, unless the demo ends first
		return w.unmark(v)
	}
	pause(v.held, 5*time.Millisecond, 15*time.Millisecond)
	if v.over() {
		return nil // somebody else may be inside now: touch nothing; leave says so
	}
	return w.finish(v, n+1)
}

// finish is the second half of the critical section.
func (w *worker) finish(v *visit, n int64) error {
	if err := w.book.write(n); err != nil {
		return err
	}
	if err := w.unmark(v); err != nil {
		return err
	}
	w.emit(&event{Kind: released, Owner: v.owner})
	return nil
}

// mark says on the server who is inside, and reports anybody it finds there.
func (w *worker) mark(v *visit) error {
	other, err := w.book.mark(v.owner)
	if err == nil && other != "" {
		w.emit(&event{Kind: found, Owner: v.owner, Found: other})
	}
	return err
}

// unmark takes the mark away, and reports if it is not there any more.
func (w *worker) unmark(v *visit) error {
	other, err := w.book.unmark(v.owner)
	if err == nil && other != v.owner {
		w.emit(&event{Kind: found, Owner: v.owner, Found: other})
	}
	return err
}

// pause sleeps for a random time, or until ctx ends.
func pause(ctx context.Context, least, most time.Duration) {
	t := time.NewTimer(least + rand.N(most-least)) //nolint:gosec // thinking needs no secrets
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
