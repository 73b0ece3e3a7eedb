package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/label"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// Config is a client's settings, defaults filled in.
type Config struct {
	Transport  transport.Transport // closed with the engine
	ClientID   uuid.UUID           // what owners begin with
	Lease      time.Duration       // of holds without a lease of their own
	FairWait   time.Duration       // of fair waiters without a wait of their own
	Command    time.Duration       // bound on waiting for one command
	PollCap    time.Duration       // bound on sleeping without asking the server
	Margin     time.Duration       // loss margin; 0: min(lease/10, 1 s)
	MaxWaiters int64               // bound on callers that wait; 0: none
	Grace      time.Duration       // how long a fair waiter must be absent to be dead; 0: for ever
	Hooks      Hooks               // who is told what happens
	ServerTime bool                // scripts are told the server's time, not this machine's
	Label      string              // what people shall recognise the client by; "": nothing
	Replicas   int                 // how many must have a lock before it is acquired; 0: none is waited for
	SyncWait   time.Duration       // for how long they are waited for
	Mapper     codec.NameMapper    // nil: names are keys
	Logger     *slog.Logger        // required
}

// Engine is the part of a client that lock kinds use. All methods are safe for
// concurrent use.
type Engine struct {
	Config
	// Watchdog renews the leases of holds and declares losses.
	Watchdog *watchdog.Loop
	// Shared has what holds under one owner that was given have in common.
	Shared Registry
	// LeaseArg is Config.Lease in milliseconds, an int64 boxed once.
	LeaseArg any
	// FairWaitArg is Config.FairWait in milliseconds, an int64 boxed once.
	FairWaitArg any

	owners   atomic.Int64
	waiters  atomic.Int64
	publish  any // the publish command, boxed
	fences   fences
	slots    sync.Map // what strategies keep here, by *Slot
	rooms    Registry // of *Room, by lockID
	spares   spares
	clock    clockOffset
	counting counting
	rights   rights
	places   atomic.Int64 // of seats, in the order in which they were taken

	departures departures
	attempts   sync.Pool     // of *Attempt
	timeouts   timeouts      // of attempts
	label      *label.Keeper // nil: there is no label

	closing context.Context    //nolint:containedctx // ends first: nothing new begins, waiters leave
	refuse  context.CancelFunc // ends closing
	quit    chan struct{}      // closed last: background work stops where it is
	ghosts  tally              // users' calls, calls that were left, doubts not settled
	closer  sync.Once
	err     error

	work     sync.WaitGroup
	spawning sync.Mutex // guards closed: no goroutine begins after Close waits
	closed   bool
}

// New returns an engine over cfg.Transport. It does no I/O.
func New(cfg Config) *Engine {
	e := &Engine{Config: cfg, quit: make(chan struct{})}
	e.closing, e.refuse = context.WithCancel(context.Background())
	e.ghosts.zero = make(chan struct{}, 1)
	e.publish = cfg.Transport.PublishCommand()
	e.Lease = cfg.Lease.Truncate(time.Millisecond)
	e.LeaseArg = e.Lease.Milliseconds()
	e.FairWaitArg = cfg.FairWait.Milliseconds()
	e.Watchdog = watchdog.New(watchdog.Config{
		Renew:  e.renew,
		Group:  e.group(),
		Margin: e.LossMargin,
		Doubt:  e.doubted,
		Lost:   ErrLost,
		Max:    ErrMaxHold,
		Closed: ErrClosed,
		Logger: cfg.Logger,
	})
	e.label = e.labelKeeper()
	return e
}

// NeedContext panics when ctx is nil, as the standard library does. It is for the
// beginning of calls that users make, where nothing has been done yet.
func NeedContext(ctx context.Context) {
	if ctx == nil {
		panic("redlatch: nil Context")
	}
}

// NextOwner returns an owner that nobody has had.
func (e *Engine) NextOwner() codec.Owner {
	return codec.NewOwner(e.ClientID, e.owners.Add(1))
}

// Publish returns the publish command as a boxed string.
func (e *Engine) Publish() any { return e.publish }

// LossMargin returns how long before the end of a lease it counts as lost.
func (e *Engine) LossMargin(lease time.Duration) time.Duration {
	if e.Margin > 0 {
		return min(e.Margin, lease)
	}
	return min(lease/10, time.Second)
}

// Map returns the key that a lock's name stands for, or an error that wraps
// codec.ErrBadName.
func (e *Engine) Map(name string) (string, error) {
	if err := codec.ValidateName(name); err != nil {
		return "", err
	}
	if e.Mapper != nil {
		name = e.Mapper.Map(name)
	}
	if _, cluster := e.Transport.(transport.Slotter); cluster {
		return name, codec.ValidateClusterName(name)
	}
	return name, codec.ValidateName(name)
}

// Closing is closed when the client begins to close.
func (e *Engine) Closing() <-chan struct{} { return e.closing.Done() }

// IsClosing reports whether the client has begun to close.
func (e *Engine) IsClosing() bool { return e.closing.Err() != nil }

// Open returns a context that ends with ctx, and when the client begins to
// close.
func (e *Engine) Open(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// Close ends every hold with ErrClosed, lets waiters leave, gives calls whose
// outcome is open one command timeout to be settled, and closes the transport.
// Leases are left to run out. It may be called more than once.
func (e *Engine) Close() error {
	e.closer.Do(func() {
		e.beginClosing()
		e.Watchdog.Close()
		e.label.Stop()
		e.spares.close()
		ctx, cancel := context.WithTimeout(context.Background(), e.Command)
		defer cancel()
		e.ghosts.wait(ctx)
		close(e.quit)
		e.spawning.Lock()
		e.closed = true
		e.spawning.Unlock()
		// The transport goes first: it ends the calls that background work
		// waits for.
		e.err = e.Transport.Close()
		e.work.Wait()
	})
	return e.err
}

// beginClosing lets nothing new begin, and ends what waits. It may be called more than
// once.
func (e *Engine) beginClosing() {
	e.refuse()
	e.timeouts.close()
}

// Shutdown refuses new work, waits until no lease is watched, or ctx ends, and
// closes. What is granted from now on is given back.
func (e *Engine) Shutdown(ctx context.Context) error {
	NeedContext(ctx)
	e.beginClosing()
	e.Watchdog.Drain(ctx)
	err := e.Close()
	left := e.Watchdog.Cut()
	if left == 0 {
		return err
	}
	why := ErrClosed // somebody else did not wait
	if ctx.Err() != nil {
		why = context.Cause(ctx)
	}
	return fmt.Errorf("redlatch: %d holds were not unlocked: %w", left, why)
}

// Enter counts a user's call in, unless the client is closing. Each Enter that
// returned nil needs a [Engine.Leave].
func (e *Engine) Enter() error {
	e.Join()
	if e.IsClosing() {
		e.Leave()
		return ErrClosed
	}
	return nil
}

// Join counts a call in that may run while the client closes.
func (e *Engine) Join() { e.ghosts.add(1) }

// Leave counts a user's call out.
func (e *Engine) Leave() { e.ghosts.add(-1) }
