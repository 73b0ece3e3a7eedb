package rsemaphore

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
)

// Option sets something about a semaphore.
type Option func(*shape)

type shape struct{ strict bool }

// WithStrictOrder serves the callers of this client in the order of their calls, whatever they
// ask for: while one waits for many permits, those behind it wait that ask for few, also where
// these are available. Default: they may go first, so that no permit is left unused; then a
// caller that asks for many can wait for as long as others take them one by one. Between
// processes there is no order, since Redisson's keys have no queue.
func WithStrictOrder() Option { return func(s *shape) { s.strict = true } }

func shapeOf(opts []Option) (s shape) {
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	return s
}

// AcquireOption sets something about one acquisition.
type AcquireOption func(*terms)

type terms struct {
	lock    []rlock.Option
	wait    time.Duration
	bounded bool // WithWait was given
	leased  bool // an option about leases was given
}

// WithWait bounds how long Acquire waits, besides its context, as rlock.WithWait does for a
// lock: at least 1 ms, or 0 for one attempt. When the time runs out Acquire returns
// ErrNotAcquired. Default: no bound.
func WithWait(d time.Duration) AcquireOption {
	return func(t *terms) {
		t.wait, t.bounded = d, true
		t.lock = append(t.lock, rlock.WithWait(d))
	}
}

// WithLease takes permits for d and does not renew them: the hold is lost when d, less the loss
// margin, is over. It is the lease time of Redisson's acquire(leaseTime, unit). At least 1 ms.
// Default: a lease of the client's watchdog timeout that is renewed, which Redisson does not
// have.
func WithLease(d time.Duration) AcquireOption { return leased(rlock.WithLease(d)) }

// WithWatchdog takes permits with a lease of d that is renewed every third of it, in place of the
// client's watchdog timeout: so long do the permits of a crashed holder stay away. At least
// 1 ms.
func WithWatchdog(d time.Duration) AcquireOption { return leased(rlock.WithWatchdog(d)) }

// WithMaxHold ends the hold d after it was acquired, however well it is renewed: its contexts end
// with ErrMaxHold, and the permits come back when the lease that is left then is over, or when
// it is released. At least 1 ms. Default: no maximum.
func WithMaxHold(d time.Duration) AcquireOption { return leased(rlock.WithMaxHold(d)) }

func leased(o rlock.Option) AcquireOption {
	return func(t *terms) {
		t.leased = true
		t.lock = append(t.lock, o)
	}
}

func termsOf(opts []AcquireOption) (t terms) {
	for _, o := range opts {
		if o != nil {
			o(&t)
		}
	}
	return t
}

// check returns why a counter cannot be acquired with the terms.
func (t *terms) check(try bool) error {
	switch {
	case t.leased:
		return fmt.Errorf("%w: permits of a counter have no leases: use NewExpirable", redlatch.ErrInvalid)
	case t.bounded && try:
		return fmt.Errorf("%w: TryAcquire does not wait, use Acquire with WithWait", redlatch.ErrInvalid)
	case t.wait < time.Millisecond && t.wait != 0:
		return fmt.Errorf("%w: WithWait(%v) is neither 0 nor at least 1 ms: write a unit, as in 10*time.Second", redlatch.ErrInvalid, t.wait)
	}
	return nil
}
