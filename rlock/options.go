package rlock

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/limits"
)

// Option sets something about one acquisition.
type Option func(*settings)

type settings struct {
	hold.Terms
	wait     time.Duration
	bounded  bool // WithWait was given
	watchdog bool // WithWatchdog was given
	capped   bool // WithMaxHold was given
	given    bool // WithOwner was given
	poll     time.Duration
	polled   bool // WithPollCap was given
	deaf     bool // WithoutWakeUps was given
}

// WithWait bounds how long Lock waits for the lock, besides its context. When
// the time runs out Lock returns ErrNotAcquired. The first attempt has half a second
// for its answer, also when the wait is shorter. At least 1 ms; with 0 Lock makes one
// attempt, however long the answer takes. Anything else, such as a number without a unit,
// gives ErrInvalid, and nothing is sent: round a wait that is computed, as in
// max(0, time.Until(end).Truncate(time.Millisecond)). Default: no bound. It is the first
// argument of Redisson's tryLock(waitTime, leaseTime, unit).
func WithWait(d time.Duration) Option {
	return func(s *settings) { s.wait, s.bounded = d, true }
}

// WithPollCap bounds for how long Lock sleeps without asking Redis, in place of the client's poll
// cap, redlatch.WithPollCap. At least 1 ms. A short one is for locks that are freed without a
// message, such as those that Redisson's getSpinLock has held: the waiter gets such a lock d
// later at most, and costs one EVALSHA each d. Of the callers of one process the one that has the
// turn polls. Redisson has no counterpart.
func WithPollCap(d time.Duration) Option {
	return func(s *settings) { s.poll, s.polled = d, true }
}

// WithoutWakeUps makes Lock wait without a subscription: it asks Redis once each d, up to an
// eighth sooner, and when the holder's lease should be over. At least 1 ms. It is for servers
// without pub/sub, and for very many locks of which hardly one is waited for. Unlock still
// publishes, so that other waiters, Redisson's among them, are woken; beside such a caller that
// polls comes late. For the plain and the fenced lock; with others, and with [WithPollCap], it
// gives ErrInvalid: a fair waiter without a subscription counts as dead. It is Redisson's
// getSpinLock, whose waiters ask every 1 to 128 ms.
func WithoutWakeUps(d time.Duration) Option {
	return func(s *settings) { s.poll, s.deaf = d, true }
}

// WithLease takes the lock for d and does not renew it: the hold is lost when d,
// less the loss margin, is over. At least 1 ms, cut to whole milliseconds.
// Default: a lease that is renewed. It is the lease time of Redisson's
// lock(leaseTime, unit).
func WithLease(d time.Duration) Option {
	return func(s *settings) { s.TTL, s.Fixed = d, true }
}

// WithWatchdog takes the lock with a lease of d that is renewed every third of
// it, in place of the client's watchdog timeout. At least 1 ms, cut to whole
// milliseconds. A short one frees the lock of a crashed holder soon. A client whose
// locks all have one does better with redlatch.WithWatchdogTimeout, after which
// its connection is also sooner given up when replies stay out. Redisson has one
// such time for each client, lockWatchdogTimeout.
func WithWatchdog(d time.Duration) Option {
	return func(s *settings) { s.TTL, s.watchdog = d, true }
}

// WithMaxHold ends the hold d after it was acquired, however well it is renewed:
// renewals stop, and its contexts end with ErrMaxHold. The lock is free when the
// lease that is left then has run out, or when it is unlocked. At least 1 ms. It
// is for renewed leases: with WithLease it gives ErrInvalid. Default: no
// maximum. Redisson has no counterpart.
func WithMaxHold(d time.Duration) Option {
	return func(s *settings) { s.Max, s.capped = d, true }
}

// WithOwner acquires the lock for owner, instead of an owner of its own: every caller that
// uses the same owner holds the lock, too, as two calls on one thread do in Redisson. It is
// for owners that travel, with a job or a request; see redlatch.ParseOwner. It must not be the
// owner of a hold that lives and was not handed over: giving that up frees the lock
// whatever the count. What [Hold.Owner] returned may become the owner of another hold; what
// [Hold.HandOver] returned, and an owner of redlatch.NewOwner, does not. Holds of one client under one owner know of each other, and none
// shortens another's lease; what other clients do with the owner they cannot know.
// Acquiring counts one more, unlocking one less, as in Redisson. When the reply is lost,
// ErrUncertain is returned and nothing is undone, because another caller may hold the
// lock for the same owner. The zero Owner gives ErrInvalid.
func WithOwner(owner redlatch.Owner) Option {
	return func(s *settings) { s.Owner, s.given = owner, true }
}

func init() {
	hold.Options = func(l *hold.Lock, opts any) (hold.Asked, error) {
		list, _ := opts.([]Option) // it is one
		s, err := configure(l, list)
		return hold.Asked{
			Terms: s.Terms, Wait: s.wait, Bounded: s.bounded, Poll: s.poll, Deaf: s.deaf, Given: s.given,
		}, err
	}
}

// configure applies the options to the defaults and checks the result.
func configure(l *hold.Lock, opts []Option) (settings, error) {
	e := l.Engine
	if len(opts) == 0 { // without an allocation
		return settings{Terms: hold.Terms{TTL: e.Lease, TTLArg: e.LeaseArg, Wait: e.FairWaitArg}}, nil
	}
	return apply(l, opts)
}

func apply(l *hold.Lock, opts []Option) (settings, error) {
	e := l.Engine
	s := settings{Terms: hold.Terms{TTL: e.Lease, Wait: e.FairWaitArg}}
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	if s.wait < time.Millisecond && s.wait != 0 {
		return s, fmt.Errorf("%w: WithWait(%v) is neither 0 nor at least 1 ms: write a unit, as in 10*time.Second", redlatch.ErrInvalid, s.wait)
	}
	if s.Fixed && s.watchdog {
		return s, fmt.Errorf("%w: WithLease and WithWatchdog contradict each other", redlatch.ErrInvalid)
	}
	if err := s.checkOwner(l); err != nil {
		return s, err
	}
	if err := s.checkPoll(l); err != nil {
		return s, err
	}
	if s.capped && s.Fixed {
		return s, fmt.Errorf("%w: WithMaxHold is for leases that are renewed, not for WithLease", redlatch.ErrInvalid)
	}
	if s.capped && (s.Max < time.Millisecond || s.Max > limits.Max) {
		return s, fmt.Errorf("%w: a maximum of %v", redlatch.ErrInvalid, s.Max)
	}
	ms, err := limits.Lease(s.TTL)
	if err != nil {
		return s, err
	}
	s.TTL = time.Duration(ms) * time.Millisecond
	if s.TTL <= e.Margin {
		return s, fmt.Errorf("%w: a loss margin of %v leaves nothing of a lease of %v", redlatch.ErrInvalid, e.Margin, s.TTL)
	}
	s.TTLArg = ms
	if s.wait > 0 {
		s.Wait = wholeMillis(s.wait)
	}
	return s, nil
}

// checkPoll checks how the caller polls.
func (s *settings) checkPoll(l *hold.Lock) error {
	_, can := l.Strategy.(acquire.Pollable)
	switch {
	case !s.polled && !s.deaf:
		return nil
	case s.polled && s.deaf:
		return fmt.Errorf("%w: WithoutWakeUps says how often to ask, and WithPollCap is for callers that are woken", redlatch.ErrInvalid)
	case s.poll < time.Millisecond || s.poll > limits.Max:
		return fmt.Errorf("%w: asking every %v: write a unit, as in 100*time.Millisecond", redlatch.ErrInvalid, s.poll)
	case s.deaf && !can:
		return fmt.Errorf("%w: WithoutWakeUps is not for a %s lock, whose waiters must listen", redlatch.ErrInvalid, l.Kind.Name())
	}
	return nil
}

// checkOwner checks the owner that was given, if one was.
func (s *settings) checkOwner(l *hold.Lock) error {
	if !s.given {
		return nil
	}
	if s.Owner.IsZero() {
		return fmt.Errorf("%w: the zero Owner", redlatch.ErrInvalid)
	}
	if _, can := l.Kind.(hold.Shareable); !can {
		return fmt.Errorf("%w: owners of a %s lock cannot be given", redlatch.ErrInvalid, l.Kind.Name())
	}
	return nil
}

// wholeMillis is the wait that a queue on the server gets: in whole milliseconds, rounded
// up.
func wholeMillis(wait time.Duration) int64 {
	ms := wait.Milliseconds()
	if wait%time.Millisecond > 0 {
		ms++
	}
	return ms
}
