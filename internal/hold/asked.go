package hold

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/limits"
)

// Asked is what the options of a call ask for, those of package rlock.
type Asked struct {
	Terms
	// Bound is for how long the caller waits at most, if Bounded; else its context alone bounds it.
	Bound time.Duration
	// Poll is how long the caller sleeps at most without asking, 0 for the client's poll cap.
	// Polled is true if it was given for a caller that is woken, Deaf for one that only polls.
	Poll                  time.Duration
	Bounded, Polled, Deaf bool
	// Given is true for an owner that others may use, too.
	Given bool
	// Watchdog is true if the lease of a renewed hold was given, Capped if Max was.
	Watchdog, Capped bool
}

// Ask applies the options of a call about a lock to the defaults, and checks the result.
func Ask[O ~func(*Asked)](l *Lock, opts []O) (Asked, error) {
	e := l.Engine
	if len(opts) == 0 { // without an allocation
		return Asked{Terms: Terms{TTL: e.Lease, TTLArg: e.LeaseArg, Wait: e.FairWaitArg}}, nil
	}
	a := Asked{Terms: Terms{TTL: e.Lease, Wait: e.FairWaitArg}}
	for _, o := range opts {
		if o != nil {
			o(&a)
		}
	}
	err := a.check(l)
	return a, err
}

// check checks what was asked for, and completes it.
func (a *Asked) check(l *Lock) error {
	if a.Bound < time.Millisecond && a.Bound != 0 {
		return fmt.Errorf("%w: WithWait(%v) is neither 0 nor at least 1 ms: write a unit, as in 10*time.Second", limits.ErrInvalid, a.Bound)
	}
	if a.Fixed && a.Watchdog {
		return fmt.Errorf("%w: WithLease and WithWatchdog contradict each other", limits.ErrInvalid)
	}
	if err := a.checkOwner(l); err != nil {
		return err
	}
	if err := a.checkPoll(l); err != nil {
		return err
	}
	if a.Capped && a.Fixed {
		return fmt.Errorf("%w: WithMaxHold is for leases that are renewed, not for WithLease", limits.ErrInvalid)
	}
	if a.Capped && (a.Max < time.Millisecond || a.Max > limits.Max) {
		return fmt.Errorf("%w: a maximum of %v", limits.ErrInvalid, a.Max)
	}
	ms, err := limits.Lease(a.TTL)
	if err != nil {
		return err
	}
	if a.Watchdog {
		if err := limits.Renewed(a.TTL); err != nil {
			return err
		}
	}
	a.TTL = time.Duration(ms) * time.Millisecond
	if a.TTL <= l.Engine.Margin {
		return fmt.Errorf("%w: a loss margin of %v leaves nothing of a lease of %v", limits.ErrInvalid, l.Engine.Margin, a.TTL)
	}
	a.TTLArg = ms
	if a.Bound > 0 {
		a.Wait = wholeMillis(a.Bound)
	}
	return nil
}

// checkPoll checks how the caller polls.
func (a *Asked) checkPoll(l *Lock) error {
	_, can := l.Strategy.(interface{ CanPoll() })
	switch {
	case !a.Polled && !a.Deaf:
		return nil
	case a.Polled && a.Deaf:
		return fmt.Errorf("%w: WithoutWakeUps says how often to ask, and WithPollCap is for callers that are woken", limits.ErrInvalid)
	case a.Poll < time.Millisecond || a.Poll > limits.Max:
		return fmt.Errorf("%w: asking every %v: write a unit, as in 100*time.Millisecond", limits.ErrInvalid, a.Poll)
	case a.Deaf && !can:
		return fmt.Errorf("%w: WithoutWakeUps is not for a %s lock, whose waiters must listen", limits.ErrInvalid, l.Kind.Name())
	}
	return nil
}

// checkOwner checks the owner that was given, if one was.
func (a *Asked) checkOwner(l *Lock) error {
	if !a.Given {
		return nil
	}
	if a.Owner.IsZero() {
		return fmt.Errorf("%w: the zero Owner", limits.ErrInvalid)
	}
	if _, can := l.Kind.(Shareable); !can {
		return fmt.Errorf("%w: owners of a %s lock cannot be given", limits.ErrInvalid, l.Kind.Name())
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
