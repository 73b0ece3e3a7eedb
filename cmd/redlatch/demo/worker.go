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

	"github.com/redlatch/redlatch/internal/tool/connect"
)

// workerCommand is the hidden command that runs work.
const workerCommand = "__demo-worker"

// worker is one process of the demo.
type worker struct {
	cfg    workerConfig
	redis  *connect.Server
	stall  atomic.Bool // the order to stall
	visits atomic.Int64
	events chan *event
}

// work is the program of a worker process. It reads its orders from in and reports to out.
// It ends when ordered, and at once when in ends.
func work(in io.Reader, out io.Writer) error {
	// Ctrl-C reaches the whole terminal; it is the parent's to deal with.
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	w := &worker{events: make(chan *event, 64)}
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s is started by redlatch demo, not by hand", workerCommand)
	}
	if err := json.Unmarshal(first, &w.cfg); err != nil {
		return err
	}
	if w.redis, err = connect.New(w.cfg.Redis); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		if !w.readOrders(lines) {
			os.Exit(1) // nothing may keep a worker alive without its parent
		}
		cancel()
		w.readOrders(lines) // until the parent is gone or lets us go
		os.Exit(1)
	}()
	return w.runAndReport(out, func() error {
		if err := w.work(ctx); err != nil && ctx.Err() == nil {
			w.report(&event{Kind: failed, Text: err.Error()})
			return err
		}
		return nil
	})
}

// work does what the configuration asks for, until ctx ends or there is no more to do.
func (w *worker) work(ctx context.Context) error {
	if w.cfg.Workers > 0 {
		return claimJobs(ctx, w)
	}
	return countRounds(ctx, w)
}

// readOrders reads orders. It returns true when that is to stop, and false when the
// parent has died.
func (w *worker) readOrders(lines *bufio.Reader) bool {
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

// runAndReport runs do, and writes what is emitted meanwhile, in that order.
func (w *worker) runAndReport(out io.Writer, do func() error) error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		enc := json.NewEncoder(out)
		for e := range w.events {
			// A parent that does not listen any more has closed our input too.
			_ = enc.Encode(e)
		}
	}()
	err := do()
	close(w.events)
	<-written
	return err
}

// report reports.
func (w *worker) report(e *event) {
	e.At = time.Now()
	w.events <- e
}

// enter sets the marker on the server, and reports a marker that it finds there.
func (w *worker) enter(m *marker, v *visit) error {
	other, err := m.mark(v.owner)
	if err == nil && other != "" {
		w.report(&event{Kind: found, Owner: v.owner, Found: other})
	}
	return err
}

// exit takes the mark away, and reports if it is not there any more.
func (w *worker) exit(m *marker, v *visit) error {
	other, err := m.unmark(v.owner)
	if err == nil && other != v.owner {
		w.report(&event{Kind: found, Owner: v.owner, Found: other})
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
