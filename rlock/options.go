package rlock

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/core"
)

// Option sets something about one acquisition.
type Option func(*settings)

type settings struct {
	wait     time.Duration
	bounded  bool // WithWait was given
	lease    time.Duration
	fixed    bool // WithLease was given
	watchdog bool // WithWatchdog was given
	leaseMS  any  // lease in milliseconds, an int64 boxed once
}

// WithWait bounds how long Lock waits for the lock, besides its context. When
// the time runs out Lock returns ErrNotAcquired. With zero or less it makes one
// attempt. Default: no bound. It is the first argument of Redisson's
// tryLock(waitTime, leaseTime, unit).
func WithWait(d time.Duration) Option {
	return func(s *settings) { s.wait, s.bounded = d, true }
}

// WithLease takes the lock for d and does not renew it: the hold is lost when d,
// less the loss margin, is over. At least 1 ms, cut to whole milliseconds.
// Default: a lease that is renewed. It is the lease time of Redisson's
// lock(leaseTime, unit).
func WithLease(d time.Duration) Option {
	return func(s *settings) { s.lease, s.fixed = d, true }
}

// WithWatchdog takes the lock with a lease of d that is renewed every third of
// it, in place of the client's watchdog timeout. At least 1 ms, cut to whole
// milliseconds. A short one frees the lock of a crashed holder soon. A client whose
// locks all have one does better with redlatch.WithWatchdogTimeout, after which
// its connection is also sooner given up when replies stay out. Redisson has one
// such time for each client, lockWatchdogTimeout.
func WithWatchdog(d time.Duration) Option {
	return func(s *settings) { s.lease, s.watchdog = d, true }
}

// settle applies the options to the defaults and checks the result.
func configure(e *core.Engine, opts []Option) (settings, error) {
	s := settings{lease: e.Lease}
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	if s.fixed && s.watchdog {
		return s, fmt.Errorf("%w: WithLease and WithWatchdog contradict each other", codec.ErrBadLease)
	}
	ms, err := codec.LeaseMillis(s.lease)
	if err != nil {
		return s, err
	}
	s.lease = time.Duration(ms) * time.Millisecond
	s.leaseMS = ms
	return s, nil
}
