package label

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/transport"
)

const (
	// Life is how long a label stays after it was last written.
	Life = 10 * time.Minute
	// Period is the time between two writes.
	Period = time.Minute
	// retrySoon is the first pause after a write that failed.
	retrySoon = time.Second
)

// Config is what a writer needs.
type Config struct {
	// Key and Text are the label's.
	Key, Text string
	// Go runs f on a goroutine, and returns false when it is too late for that.
	Go func(f func()) bool
	// Send runs the call that fill fills. It returns early when stop is closed.
	Send func(stop <-chan struct{}, fill func(*transport.Call)) error
	// Reconnected returns a channel that is closed at the next reconnect, or nil.
	Reconnected func() <-chan struct{}
	// Join and Leave count the writer's farewell among what a closing client waits
	// for.
	Join, Leave func()
	// Logger gets a warning when the label cannot be written.
	Logger *slog.Logger
}

// Writer writes one label and renews it. A nil Writer does nothing. Its methods are safe for
// concurrent use and do not block.
type Writer struct {
	cfg   Config
	begun atomic.Bool   // the goroutine has begun, or never will
	stop  chan struct{} // closed by Stop

	mu      sync.Mutex // guards what follows, and the beginning
	running bool       // the goroutine has begun
	stopped bool
}

// New returns a writer that does nothing until Start.
func New(cfg Config) *Writer { return &Writer{cfg: cfg, stop: make(chan struct{})} }

// Start sees to it that the label is on the server from now on. After the first call
// it costs one look at a flag.
func (w *Writer) Start() {
	if w == nil || w.begun.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun.Swap(true) && !w.stopped {
		w.running = w.cfg.Go(w.run)
	}
}

// Stop ends the writing. The goroutine deletes the key and then leaves, in time
// that is bounded by Send alone.
func (w *Writer) Stop() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.stopped = true
	if w.running {
		w.cfg.Join()
	}
	close(w.stop)
}

func (w *Writer) run() {
	defer w.cfg.Leave()
	var failing time.Duration // the last pause after a failure, 0 after a success
	for {
		again := w.cfg.Reconnected() // asked before the write: what breaks under it shows
		err := w.cfg.Send(w.stop, w.write)
		if transport.IsCode(err, "OOM") {
			_ = w.cfg.Send(w.stop, w.extend) // needs no memory; a label that is not there is lacking anyway
		}
		failing = w.judge(err, failing)
		pause := Period
		if failing > 0 {
			pause = failing
		}
		if !w.pause(pause, again) {
			// Without an answer the key has its time to live.
			_ = w.cfg.Send(nil, w.remove)
			return
		}
	}
}

// judge returns the pause after a failure, 0 after a success. It logs when failing begins
// and when it ends.
func (w *Writer) judge(err error, failing time.Duration) time.Duration {
	switch {
	case err == nil && failing > 0:
		w.cfg.Logger.Info("redlatch: the client's label is on the server again", "key", w.cfg.Key)
		return 0
	case err == nil:
		return 0
	case failing == 0 && !w.ending():
		w.cfg.Logger.Warn("redlatch: the client's label cannot be written: its locks cannot be attributed to it",
			"key", w.cfg.Key, "error", err)
	}
	return min(max(2*failing, retrySoon), Period)
}

func (w *Writer) ending() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// pause returns false when it is time to go.
func (w *Writer) pause(d time.Duration, again <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-again:
		return true
	case <-w.stop:
		return false
	}
}

func (w *Writer) write(c *transport.Call) {
	c.Command, c.NumKeys = "SET", 1
	c.Args = append(c.Args, w.cfg.Key, w.cfg.Text, "PX", Life.Milliseconds())
}

// extend keeps the label that the server has.
func (w *Writer) extend(c *transport.Call) {
	c.Command, c.NumKeys = "PEXPIRE", 1
	c.Args = append(c.Args, w.cfg.Key, Life.Milliseconds())
}

func (w *Writer) remove(c *transport.Call) {
	c.Command, c.NumKeys = "DEL", 1
	c.Args = append(c.Args, w.cfg.Key)
}
