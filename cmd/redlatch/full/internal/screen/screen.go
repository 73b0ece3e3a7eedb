// Package screen is the terminal view of redlatch top: a table of locks, and a page for one lock.
// It draws visible rows only. One goroutine owns the view; another one waits for new data.
package screen

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/gdamore/tcell/v3"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/top"
	"github.com/redlatch/redlatch/internal/tool/board"
)

// Show shows locks on the terminal until the user quits or ctx ends.
func Show(ctx context.Context, o top.Options) error {
	s, err := tcell.NewScreen()
	if err == nil {
		err = s.Init()
	}
	if err != nil {
		return fmt.Errorf("cannot use this terminal: %w", err)
	}
	defer func() {
		suspend(s)
		s.Fini()
	}()
	v, continued := newView(s, o), make(chan os.Signal, 1)
	notifyContinued(continued)
	defer signal.Stop(continued)
	v.continued = continued
	return v.run(ctx)
}

// quiet is how long no key must arrive, within restore, before the terminal is restored.
const quiet, restore = 50 * time.Millisecond, time.Second

// suspend restores the terminal. It discards keys, because tcell hangs while its queues are full.
func suspend(s tcell.Screen) {
	for until := time.Now().Add(restore); time.Now().Before(until); {
		select {
		case <-s.EventQ():
			continue
		case <-time.After(quiet):
		}
		break
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-s.EventQ():
			case <-done:
				return
			}
		}
	}()
	_ = s.Suspend() // never fails
	done <- struct{}{}
}

// stop gives the terminal to the shell. Without a shell, the process does not stop.
func (v *view) stop() {
	suspend(v.screen)
	stopJob()
	select {
	case <-v.continued:
	case <-time.After(quiet):
	}
	v.resume()
}

// resume sets up the terminal again.
func (v *view) resume() {
	suspend(v.screen)
	v.err = v.screen.Resume()
	v.resumed = true
}

const (
	// redrawEvery is the interval at which leases and ages change.
	redrawEvery = time.Second
	// askEvery keeps a feed running, which stops some seconds after the last request.
	askEvery = 3 * time.Second
)

// view is owned by the goroutine of run.
type view struct {
	screen tcell.Screen
	top.Options

	table     table
	lock      *page // nil while the table is shown
	continued <-chan os.Signal
	// resumed is set after a pause until new data arrives.
	resumed bool

	help bool
	quit bool
	err  error // why the view ends
}

func newView(s tcell.Screen, o top.Options) *view {
	return &view{screen: s, Options: o, table: table{order: byTrouble}}
}

// run reads only what is shown: all locks, or one.
func (v *view) run(ctx context.Context) error {
	ticks := time.NewTicker(redrawEvery)
	defer ticks.Stop()
	read := v.read(ctx)
	defer func() { read.stop() }()
	for !v.quit && v.err == nil {
		v.draw()
		shown := v.lock
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev := <-v.screen.EventQ():
			v.handle(ev)
		case all := <-read.locks:
			v.set(all)
		case l := <-read.lock:
			v.lock.lock, v.resumed = l, false
		case <-v.continued:
			v.resume()
		case <-ticks.C:
		}
		if v.lock != shown || v.lock != nil && v.lock.fail != "" {
			read.stop()
			read = v.read(ctx)
		}
	}
	return v.err
}

func (v *view) set(all *board.Locks) {
	if v.table.all != all {
		v.resumed = false
		v.table.set(all)
	}
	if v.lock != nil {
		found := all.Lock(func(e *board.Entry) bool { return e.Name == v.lock.name })
		v.lock.lock = cmp.Or(found, &board.Lock{Seen: all.Seen, Name: v.lock.name})
	}
}

// reading is one feed of the board; the other channel is nil.
type reading struct {
	locks <-chan *board.Locks
	lock  <-chan *board.Lock
	stop  func() // waits for the end
}

func (v *view) read(ctx context.Context) reading {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	r := reading{stop: func() { cancel(); running.Wait() }}
	if v.lock == nil || v.lock.isOdd() {
		r.locks = watch(ctx, &running, v.Board.Locks)
		return r
	}
	feed, err := v.Board.Lock(v.lock.name, "")
	if err != nil {
		v.lock.fail = "too many locks were opened; this one follows in a few seconds"
		return r
	}
	v.lock.fail = ""
	r.lock = watch(ctx, &running, feed)
	return r
}

// watch returns the values of a feed until ctx ends.
func watch[T any](ctx context.Context, running *sync.WaitGroup, feed *board.Feed[T]) <-chan *T {
	values := make(chan *T)
	running.Go(func() {
		for {
			value, changed, err := feed.Get(ctx)
			if value == nil || err != nil {
				return // ctx or the board has ended
			}
			select {
			case values <- value:
			case <-ctx.Done():
				return
			}
			select {
			case <-changed:
			case <-time.After(askEvery):
			case <-ctx.Done():
				return
			}
		}
	})
	return values
}
