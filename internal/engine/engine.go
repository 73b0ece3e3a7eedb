// Package engine is the part of a client that every kind of lock uses. It runs calls, keeps the client's state, and
// shuts the client down. An [Attempt] is one call and its caller's wait. If the context ends, the command times out or
// the client is closed, only the wait ends, with ErrUncertain. The attempt's [Resolver] then receives the late reply or
// error, and may return an [InDoubt], which is resolved in the background: its connection is killed, if permitted, and
// its effect is undone.
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
	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/clock"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

// Config contains a client's settings.
type Config struct {
	Transport  transport.Transport // closed with the engine
	ClientID   uuid.UUID           // identifies the client in its owners
	Lease      time.Duration
	FairWait   time.Duration // default for how long a fair queue keeps a waiter's place
	Command    time.Duration // maximum wait for one command
	PollCap    time.Duration // longest sleep without an attempt
	Margin     time.Duration // 0 means min(lease/10, 1 s)
	MaxWaiters int64         // 0 means no limit
	Grace      time.Duration // a fair waiter that is absent for this long counts as dead; 0 means never
	Hooks      Hooks
	Losses     Losses        // required for holds
	ServerTime bool          // scripts use the server's time
	Label      string        // readable name of the client; may be empty
	Replicas   int           // number of replicas that must have a lock before it counts as acquired
	SyncWait   time.Duration // maximum wait for the replicas
	Mapper     Mapper        // if nil, names are keys
	AnyName    bool          // accept names that are not valid UTF-8, for tools
	Opener     any           // how a tool opened the client, or nil
	Logger     *slog.Logger  // required

	// LabelOptional means that failures to write Label are not logged.
	LabelOptional bool

	// Outer contains the owners of other processes' holds that all waits are inside.
	Outer []string

	// KindOf, if not nil, fills a call that returns the kind of object stored at a key.
	KindOf func(c *transport.Call, key any)
}

// Engine is the part of a client that locks use. It is safe for concurrent use.
type Engine struct {
	Config
	Lifecycle
	Clock    Clock
	Watchdog *watchdog.Loop
	// LeaseArg is Config.Lease in milliseconds, as a boxed int64.
	LeaseArg any
	// FairWaitArg is Config.FairWait in milliseconds, as a boxed int64.
	FairWaitArg any

	owners    atomic.Int64
	waits     atomic.Int64 // inside other holds
	publish   any          // the publish command, boxed
	fences    fences
	slots     slots
	lacked    sync.Map                        // missing rights, each logged once
	published atomic.Pointer[map[string]bool] // kinds whose channels the user may publish to

	subscriptions, inDoubt atomic.Int64

	waitMu    sync.Mutex // guards the fields below
	waiting   map[*Waiting]struct{}
	announced map[string][]*nested // the waits inside an owner's holds, oldest first

	leader   builtin.Leader // if nil, no calls run on callers' goroutines
	attempts sync.Pool      // of *Attempt
	timeouts timeouts
	label    label

	closer sync.Once
	err    error
}

// New returns an engine. It does not perform any I/O.
func New(cfg Config) *Engine {
	e := &Engine{Config: cfg, announced: map[string][]*nested{}}
	e.init()
	e.Clock.engine = e
	e.publish = cfg.Transport.PublishCommand()
	if l, ok := cfg.Transport.(builtin.Leader); ok && l.Leads(cfg.Transport) {
		e.leader = l
	}
	e.Lease = cfg.Lease.Truncate(time.Millisecond)
	e.LeaseArg = e.Lease.Milliseconds()
	e.FairWaitArg = cfg.FairWait.Milliseconds()
	e.Watchdog = watchdog.New(watchdog.Config{
		Renew:  e.renew,
		Group:  slotsOf(cfg.Transport),
		Margin: e.LossMargin,
		Doubt:  e.doubted,
		Logger: cfg.Logger,
	})
	e.label.engine = e
	e.label.ctx, e.label.stop = context.WithCancel(context.Background())
	return e
}

// NeedContext panics if ctx is nil.
func NeedContext(ctx context.Context) {
	if ctx == nil {
		panic("redlatch: nil Context")
	}
}

// NextOwner returns an unused owner.
func (e *Engine) NextOwner() codec.Owner {
	return codec.NewOwner(e.ClientID, e.owners.Add(1))
}

// Publish returns the publish command as a boxed string.
func (e *Engine) Publish() any { return e.publish }

// LossMargin returns how long before its end a lease counts as lost.
func (e *Engine) LossMargin(lease time.Duration) time.Duration {
	if e.Margin > 0 {
		return min(e.Margin, lease)
	}
	return min(lease/10, time.Second)
}

// Mapper maps lock names to keys.
type Mapper interface {
	Map(name string) string
}

// Map returns the key of a lock. An error wraps limits.ErrInvalid.
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

// Close ends all holds with ErrClosed, ends all waits, allows one command timeout for resolving calls in doubt, and
// then closes the transport. Locks stay held until their leases expire.
func (e *Engine) Close() error { return e.CloseWithin(e.Command) }

// CloseWithin is like Close, but it allows bound for resolving calls in doubt.
func (e *Engine) CloseWithin(bound time.Duration) error {
	e.closer.Do(func() {
		e.beginClosing()
		e.Watchdog.Close()
		e.label.close()
		e.slots.close()
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		e.finish(ctx)
		// Close the transport before waiting, because that ends the calls of background work.
		e.err = e.Transport.Close()
		e.work.Wait()
		if e.Hooks.Closed != nil {
			e.Hooks.Closed()
		}
	})
	return e.err
}

// beginClosing rejects new calls and then wakes the waiting ones. timeouts.add relies on that order.
func (e *Engine) beginClosing() {
	e.refuse()
	e.timeouts.close()
}

// Shutdown rejects new calls, waits until all holds have ended or ctx ends, and then closes the engine.
func (e *Engine) Shutdown(ctx context.Context) error {
	NeedContext(ctx)
	e.beginClosing()
	e.Watchdog.Drain(ctx)
	err := e.Close()
	left := e.Watchdog.Cut()
	if left == 0 {
		return err
	}
	why := ErrClosed // because of a concurrent Close
	if ctx.Err() != nil {
		why = context.Cause(ctx)
	}
	return fmt.Errorf("redlatch: holds not unlocked: %d: %w", left, why)
}

// Lifecycle tracks whether an engine is open, closing (new calls are rejected and waits have ended) or closed.
type Lifecycle struct {
	closing context.Context    //nolint:containedctx // ends first
	refuse  context.CancelFunc // ends closing
	running context.Context    //nolint:containedctx // ends last
	end     context.CancelFunc // ends running

	inFlight atomic.Int64 // users' calls, abandoned calls and calls in doubt
	draining atomic.Bool
	idle     chan struct{} // buffered; receives when inFlight drops to zero while draining

	work     sync.WaitGroup
	spawning sync.Mutex // guards closed, so that no goroutine is started after work.Wait
	closed   bool
}

func (l *Lifecycle) init() {
	l.running, l.end = context.WithCancel(context.Background())
	l.closing, l.refuse = context.WithCancel(context.Background())
	l.idle = make(chan struct{}, 1)
}

// Closing returns a channel that is closed when the client begins to close.
func (l *Lifecycle) Closing() <-chan struct{} { return l.closing.Done() }

// IsClosing reports whether the client has begun to close.
func (l *Lifecycle) IsClosing() bool { return l.closing.Err() != nil }

// Open returns a context that ends with ctx or when the client begins to close.
func (l *Lifecycle) Open(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// Enter begins a user's call, unless the client is closing. If it returns nil, the caller must call [Lifecycle.Leave].
func (l *Lifecycle) Enter() error {
	l.Join()
	if l.IsClosing() {
		l.Leave()
		return ErrClosed
	}
	return nil
}

// Join begins work that may continue while the client closes; Leave ends it.
func (l *Lifecycle) Join() { l.inFlight.Add(1) }

// Leave ends the call or work that Enter or Join began.
func (l *Lifecycle) Leave() {
	if l.inFlight.Add(-1) == 0 && l.draining.Load() {
		select {
		case l.idle <- struct{}{}:
		default:
		}
	}
}

// Go runs f on a goroutine that Close waits for, so f must return soon after the client begins to close. If the client
// is closed, Go returns false without running f.
func (l *Lifecycle) Go(f func()) bool {
	l.spawning.Lock()
	defer l.spawning.Unlock()
	if l.closed {
		return false
	}
	l.work.Go(f)
	return true
}

// GoBeforeClose is like Go, but Close lets f end before it closes the transport, for up to one command timeout.
func (l *Lifecycle) GoBeforeClose(f func()) bool {
	l.Join()
	started := l.Go(func() { defer l.Leave(); f() })
	if !started {
		l.Leave()
	}
	return started
}

// Sleep sleeps for d. It returns false if ctx ends or the client begins to close first.
func (l *Lifecycle) Sleep(ctx context.Context, d time.Duration) bool {
	ctx, cancel := l.Open(ctx)
	defer cancel()
	return clock.Sleep(ctx, d)
}

// Wait sleeps for d, even while the client is closing. It returns false if the client is closed.
func (l *Lifecycle) Wait(d time.Duration) bool { return clock.Sleep(l.running, d) }

// finish waits for open work until ctx ends. After that, Go returns false.
func (l *Lifecycle) finish(ctx context.Context) {
	l.drain(ctx)
	l.end()
	l.spawning.Lock()
	l.closed = true
	l.spawning.Unlock()
}

// drain waits until all work has ended or ctx ends. Unlike WaitGroup.Wait, it allows new work to begin.
func (l *Lifecycle) drain(ctx context.Context) {
	l.draining.Store(true)
	defer l.draining.Store(false)
	for l.inFlight.Load() != 0 {
		select {
		case <-l.idle:
		case <-ctx.Done():
			return
		}
	}
}
