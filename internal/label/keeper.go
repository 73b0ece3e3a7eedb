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

// Config is what a keeper is told and what it needs.
type Config struct {
	// Key and Text are the label's.
	Key, Text string
	// Go runs f on a goroutine, and returns false when it is too late for that.
	Go func(f func()) bool
	// Send runs the call that fill fills. It returns early when stop is closed.
	Send func(stop <-chan struct{}, fill func(*transport.Call)) error
	// Reconnected returns a channel that is closed at the next reconnect, or nil.
	Reconnected func() <-chan struct{}
	// Join and Leave count the keeper's farewell among what a closing client waits
	// for.
	Join, Leave func()
	// Logger hears of a label that cannot be written.
	Logger *slog.Logger
}

// Keeper keeps one label. A nil Keeper keeps none. Its methods are safe for
// concurrent use and do not block.
type Keeper struct {
	cfg  Config
	kept atomic.Bool   // the goroutine has begun, or never will
	stop chan struct{} // closed by Stop

	mu      sync.Mutex // guards what follows, and the beginning
	running bool       // the goroutine has begun
	stopped bool
}

// New returns a keeper that does nothing until Keep.
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg, stop: make(chan struct{})} }

// Keep sees to it that the label is on the server from now on. After the first call
// it costs one look at a flag.
func (k *Keeper) Keep() {
	if k == nil || k.kept.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.kept.Swap(true) && !k.stopped {
		k.running = k.cfg.Go(k.run)
	}
}

// Stop ends the keeping. The goroutine deletes the key and then leaves, in time
// that is bounded by Send alone.
func (k *Keeper) Stop() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	k.stopped = true
	if k.running {
		k.cfg.Join()
	}
	close(k.stop)
}

func (k *Keeper) run() {
	defer k.cfg.Leave()
	var failing time.Duration // the last pause after a failure, 0 after a success
	for {
		again := k.cfg.Reconnected() // asked before the write: what breaks under it shows
		err := k.cfg.Send(k.stop, k.write)
		failing = k.judge(err, failing)
		pause := Period
		if failing > 0 {
			pause = failing
		}
		if !k.pause(pause, again) {
			// Without an answer the key has its time to live.
			_ = k.cfg.Send(nil, k.remove)
			return
		}
	}
}

// judge returns the pause after a failure, 0 after a success. The log is told when
// failing begins and when it ends.
func (k *Keeper) judge(err error, failing time.Duration) time.Duration {
	switch {
	case err == nil && failing > 0:
		k.cfg.Logger.Info("redlatch: the client's label is on the server again", "key", k.cfg.Key)
		return 0
	case err == nil:
		return 0
	case failing == 0 && !k.ending():
		k.cfg.Logger.Warn("redlatch: the client's label cannot be written: nobody can look up whom its locks belong to",
			"key", k.cfg.Key, "error", err)
	}
	return min(max(2*failing, retrySoon), Period)
}

func (k *Keeper) ending() bool {
	select {
	case <-k.stop:
		return true
	default:
		return false
	}
}

// pause returns false when it is time to go.
func (k *Keeper) pause(d time.Duration, again <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-again:
		return true
	case <-k.stop:
		return false
	}
}

func (k *Keeper) write(c *transport.Call) {
	c.Command, c.NumKeys = "SET", 1
	c.Args = append(c.Args, k.cfg.Key, k.cfg.Text, "PX", Life.Milliseconds())
}

func (k *Keeper) remove(c *transport.Call) {
	c.Command, c.NumKeys = "DEL", 1
	c.Args = append(c.Args, k.cfg.Key)
}
