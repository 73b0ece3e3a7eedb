// Package label keeps a client's label on the server: a text by which people
// recognise the program that a client's UUID stands for.
//
// A label is a key of its own, outside of Redisson's, with a time to live: one for
// each client, however many locks that has. It is written by a command of its own
// and never by a lock's script, because it lives in another slot of a cluster, and
// because no lock may fail for it. No decision depends on it.
//
//	          Start                Stop
//	silent ─────────▶ kept ─────────────────▶ gone: the key is deleted
//	                  │  ▲
//	                  └──┘ every Period, and after each reconnect: written anew
//
// [Writer] has one goroutine, which begins with the first Start, the first time that
// the client asks for a lock. It ends with Stop, whose last act is to delete the
// key. A process that dies leaves the key for Life at most; one whose server forgot
// it writes it again within Period. A write that fails is tried again after a pause
// that grows up to Period, and logged once. A server without memory refuses it: the label
// that it has is kept then.
package label

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/transport"
)

// prefix is what the keys of labels begin with.
const prefix = "redlatch:label:"

// MaxLen is the length of the longest label, in bytes.
const MaxLen = 200

// Key returns the key of a client's label.
func Key(client uuid.UUID) string { return prefix + client.String() }

// Check returns an error that says why a text cannot be a label: it is too long, or
// not one line of printable UTF-8.
func Check(text string) error {
	switch {
	case len(text) > MaxLen:
		return fmt.Errorf("a label of %d bytes, of which there may be %d", len(text), MaxLen)
	case !utf8.ValidString(text):
		return fmt.Errorf("the label %q is not valid UTF-8", text)
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the label %q has characters that cannot be printed on one line", text)
	}
	return nil
}

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
