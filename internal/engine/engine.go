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
	"github.com/redlatch/redlatch/internal/limits"
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
	Hooks      Hooks               // called for what happens
	Losses     Losses              // with which holds end that are lost; required where there are holds
	ServerTime bool                // scripts are given the server's time, not this machine's
	Label      string              // what people shall recognise the client by; "": nothing
	Replicas   int                 // how many must have a lock before it is acquired; 0: none is waited for
	SyncWait   time.Duration       // for how long they are waited for
	Mapper     Mapper              // nil: names are keys
	AnyName    bool                // names that are no UTF-8 are not refused: for tools, which find such keys
	Opener     any                 // what has opened the client and can do more for tools; nil: nothing
	Logger     *slog.Logger        // required

	// KindOf fills a call that names the kind of object under a key; nil: errors name none.
	KindOf func(c *transport.Call, key any)
}

// Engine is the part of a client that locks use. It knows no kind of lock. All methods are
// safe for concurrent use.
type Engine struct {
	Config
	Lifecycle
	Waiters
	// Clock is the time that scripts are given.
	Clock Clock
	// Watchdog renews the leases of holds and declares losses.
	Watchdog *watchdog.Loop
	// LeaseArg is Config.Lease in milliseconds, an int64 boxed once.
	LeaseArg any
	// FairWaitArg is Config.FairWait in milliseconds, an int64 boxed once.
	FairWaitArg any

	owners     atomic.Int64
	publish    any // the publish command, boxed
	fences     fences
	slots      slots
	lacked     sync.Map // rights that the server was found to refuse; each is logged once
	publishing publishing
	gauges     gauges

	leader   transport.Leader // nil: the transport leaves callers' goroutines alone
	attempts sync.Pool        // of *Attempt
	timeouts timeouts         // of attempts
	label    *label.Writer    // nil: there is no label

	closer sync.Once
	err    error
}

// New returns an engine over cfg.Transport. It does no I/O.
func New(cfg Config) *Engine {
	e := &Engine{Config: cfg}
	e.init()
	e.Clock.engine = e
	e.publish = cfg.Transport.PublishCommand()
	if l, ok := cfg.Transport.(transport.Leader); ok && l.Leads(cfg.Transport) {
		e.leader = l
	}
	e.Lease = cfg.Lease.Truncate(time.Millisecond)
	e.LeaseArg = e.Lease.Milliseconds()
	e.FairWaitArg = cfg.FairWait.Milliseconds()
	e.most = cfg.MaxWaiters
	e.Watchdog = watchdog.New(watchdog.Config{
		Renew:  e.renew,
		Group:  slotsOf(cfg.Transport),
		Margin: e.LossMargin,
		Doubt:  e.doubted,
		Logger: cfg.Logger,
	})
	e.label = newLabelWriter(e)
	return e
}

// NeedContext panics when ctx is nil, as the standard library does. It is for the
// beginning of calls that users make, where nothing has been done yet.
func NeedContext(ctx context.Context) {
	if ctx == nil {
		panic("redlatch: nil Context")
	}
}

// NextOwner returns an owner that was never used.
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

// Mapper makes keys of names.
type Mapper interface {
	// Map returns the key of the lock called name.
	Map(name string) string
}

// Map returns the key that a lock's name stands for, or an error that wraps
// limits.ErrInvalid.
func (e *Engine) Map(name string) (string, error) {
	if err := e.checkName(name); err != nil {
		return "", err
	}
	if e.Mapper != nil {
		name = e.Mapper.Map(name)
	}
	if err := e.checkName(name); err != nil {
		return name, err
	}
	if _, cluster := e.Transport.(transport.Slotter); cluster {
		return name, limits.OneSlot(name)
	}
	return name, nil
}

func (e *Engine) checkName(name string) error {
	if e.AnyName && name != "" {
		return nil
	}
	return limits.Name(name)
}

// Close ends every hold with ErrClosed, lets waiters leave, gives calls whose
// outcome is open one command timeout to be resolved, and closes the transport.
// Leases are left to run out. It may be called more than once.
func (e *Engine) Close() error { return e.CloseWithin(e.Command) }

// CloseWithin is Close with another bound on the time for calls whose outcome is open.
func (e *Engine) CloseWithin(bound time.Duration) error {
	e.closer.Do(func() {
		e.beginClosing()
		e.Watchdog.Close()
		e.label.Stop()
		e.slots.close()
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		e.finish(ctx)
		// The transport goes first: it ends the calls that background work
		// waits for.
		e.err = e.Transport.Close()
		e.work.Wait()
		if e.Hooks.Closed != nil {
			e.Hooks.Closed()
		}
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
	why := ErrClosed // another caller did not wait
	if ctx.Err() != nil {
		why = context.Cause(ctx)
	}
	return fmt.Errorf("redlatch: %d holds were not unlocked: %w", left, why)
}
