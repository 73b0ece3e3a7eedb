// Package leader elects a leader among processes, for work that only one process should do at a time. The leader holds
// an rlock lock or, with Config.Fair, an rfairlock lock.
//
//	err := leader.Run(ctx, client, "scheduler", leader.Config{Lead: serve})
//
// [Run] waits for the lock, calls Lead while it holds the lock, and releases it when Lead returns.
// If the leader dies or loses its connection to Redis, another candidate leads when the lease
// expires, after 30 seconds or the time set with redlatch.WithWatchdogTimeout.
//
// Lead's context ends before another candidate can lead. If the lock was forcibly removed or the
// server lost the key, the context ends at the next renewal. Use tokens (package rfencedlock) for
// work that must not be done twice. If Lead has not returned when another candidate may lead, an
// error is logged.
package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

const defaultPause = time.Second

// Config configures a candidate. Only Lead is required.
type Config struct {
	// Lead does the leader's work. It should run until ctx ends and then return promptly;
	// context.Cause(ctx) returns the reason. If Lead returns earlier, Run returns its error.
	Lead func(ctx context.Context) error

	// Fair makes candidates lead in order of arrival, across processes. By default, there is no
	// order.
	Fair bool

	// OnError is called on Run's goroutine with each error that does not end Run: the error that
	// ended a leadership, such as redlatch.ErrLost, joined with Lead's error, or an error from
	// acquiring the lock. By default these errors are logged as warnings.
	OnError func(err error)

	// Pause is the delay before Run retries after such an error. The default is 1 s.
	Pause time.Duration

	// Status, if set, reports whether this candidate leads, for example to a readiness probe.
	Status *Status
}

// Run makes this process a candidate until ctx ends: whenever it acquires the lock called name, it
// calls config.Lead. All candidates must use the same name and Fair. If Lead panics, the lock is
// released first. It is safe for concurrent use: each call is a separate candidate. It sends the
// commands of rlock.Lock.Lock and rlock.Hold.Unlock.
//
// Run returns nil if ctx ended or Lead returned nil, unless the lock may still be held. Errors:
//   - Lead's error, unless it only reports that ctx ended
//   - ErrUncertain, ErrNotSent or ErrLost if the lock may not be free, ErrNotNotified if its waiters
//     were not notified; these are joined with Lead's error
//   - ErrClosed and ErrWrongType, which retrying cannot fix
//   - ErrInvalid for an invalid name, a negative Pause or a Config without Lead
//
// Other errors are passed to OnError, and Run continues after Pause.
func Run(ctx context.Context, client *redlatch.Client, name string, config Config) error {
	engine.NeedContext(ctx)
	e := engine.EngineOf(client)
	c := &candidate{Config: config, logger: e.Logger.With("lock", name), margin: e.LossMargin(e.Lease)}
	if c.Lead == nil || c.Pause < 0 {
		return &redlatch.LockError{Op: "lead", Name: name, Err: fmt.Errorf("%w: Config needs a Lead function and a non-negative Pause", redlatch.ErrInvalid)}
	}
	if c.Pause == 0 {
		c.Pause = defaultPause
	}
	if c.Status == nil {
		c.Status = &Status{}
	}
	lock := rlock.New(client, name)
	if c.Fair {
		lock = rfairlock.New(client, name)
	}
	for {
		over, err := c.campaign(ctx, lock)
		if over {
			return err
		}
		c.report(err)
		select {
		case <-time.After(c.Pause):
		case <-ctx.Done():
			return nil
		}
	}
}

type candidate struct {
	Config
	logger *slog.Logger
	margin time.Duration // how long the server keeps a lock after its hold was lost
}

// If over is true, err is Run's result. Otherwise it is passed to OnError.
func (c *candidate) campaign(ctx context.Context, lock *rlock.Lock) (over bool, err error) {
	hold, err := lock.Lock(ctx)
	switch {
	case err == nil:
		return c.lead(ctx, hold)
	case ctx.Err() != nil && !errors.Is(err, redlatch.ErrUncertain):
		return true, nil
	case ctx.Err() != nil:
		return true, err // the lock may not be free
	default:
		return stays(err), err
	}
}

func (c *candidate) lead(ctx context.Context, hold *rlock.Hold) (over bool, err error) {
	leading := hold.Context(ctx)
	own, early, unlock := c.call(ctx, leading, hold)
	if !early && (errors.Is(own, context.Cause(leading)) || errors.Is(own, leading.Err())) {
		own = nil // the context's own error
	}
	if !early && ctx.Err() == nil {
		cause := context.Cause(leading)
		return stays(cause), errors.Join(cause, own)
	}
	return true, errors.Join(own, unlock)
}

// early reports whether Lead returned before its context ended.
func (c *candidate) call(ctx, leading context.Context, hold *rlock.Hold) (own error, early bool, unlock error) {
	ended := leading.Err
	c.Status.ended.Store(&ended)
	returned := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { c.watch(hold.Context(context.WithoutCancel(ctx)), returned) })
	defer func() {
		close(returned)
		watch.Wait()
		unlock = hold.Unlock()
	}()
	own = c.Lead(leading)
	return own, leading.Err() == nil, nil
}

func (c *candidate) watch(held context.Context, returned <-chan struct{}) {
	select {
	case <-held.Done():
	case <-returned:
		return
	}
	select {
	case <-time.After(c.margin):
		c.logger.Error("redlatch: Lead has not returned; another candidate may lead now", "cause", context.Cause(held))
	case <-returned:
	}
}

func (c *candidate) report(err error) {
	if c.OnError != nil {
		c.OnError(err)
		return
	}
	c.logger.Warn("redlatch: candidate is not leading; retrying after a pause", "error", err, "pause", c.Pause)
}

func stays(err error) bool {
	return errors.Is(err, redlatch.ErrClosed) || errors.Is(err, redlatch.ErrInvalid) || errors.Is(err, redlatch.ErrWrongType)
}

// Status reports whether a candidate leads. The zero Status is ready for the Config of one [Run].
// All methods are safe for concurrent use and send nothing.
type Status struct {
	ended atomic.Pointer[func() error] // the Err method of the last leadership's context
}

// IsLeader reports whether the candidate leads, that is, whether Lead's context is still live. It
// reads the clocks, so it is correct even after the machine has been suspended. For work that must
// not be done twice, use Lead's context.
func (s *Status) IsLeader() bool {
	ended := s.ended.Load()
	return ended != nil && (*ended)() == nil
}

// ServeHTTP responds to a readiness probe, on any method and path, with 200 and "leader", or 503 and
// "standby". Do not use it as a liveness probe: a waiting candidate is healthy.
func (s *Status) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !s.IsLeader() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("standby\n"))
		return
	}
	_, _ = w.Write([]byte("leader\n"))
}
