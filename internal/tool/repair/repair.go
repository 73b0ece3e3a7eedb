// Package repair releases locks and permits of dead holders and evicts dead waiters. It checks again before it
// changes anything. If nothing failed but the repair was not carried out, the error is a Refusal.
package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/fairqueue"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
)

// Reasons for a Refusal, as in the JSON output of redlatch unlock.
const (
	RefusedAlive    = "alive"
	RefusedUnknown  = "not_known_dead"
	RefusedOther    = "held_by_another"
	RefusedChanged  = "changed_hands"
	RefusedKind     = "other_kind"
	RefusedFree     = "free"
	RefusedDeclined = "declined"
	RefusedAbsent   = "not_queued"
)

// Refusal is the error for a repair that would be wrong.
type Refusal struct {
	Why  string
	Text string
	// Hint explains how to do it anyway with redlatch, or is "" if that is impossible.
	Hint string
}

// Error returns Text and Hint.
func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Text
	}
	return r.Text + ". " + r.Hint
}

func refusef(why, format string, args ...any) *Refusal {
	return &Refusal{Why: why, Text: fmt.Sprintf(format, args...)}
}

func (r *Refusal) with(format string, args ...any) *Refusal {
	r.Hint = fmt.Sprintf(format, args...)
	return r
}

func isFree(name string) *Refusal { return refusef(RefusedFree, "lock %q is free", name) }

// IsFree reports whether err is a Refusal because the lock is free.
func IsFree(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Why == RefusedFree
}

// Target is a server with locks.
type Target struct {
	Client *redlatch.Client
	Dial   connect.Dialer
}

// CheckIsLock returns an *inspect.NotLock if the hash is not a lock.
func (t *Target) CheckIsLock(ctx context.Context, name string) error {
	return t.use(ctx, func(c redis.Conn) error { return inspect.Glance(c, name) })
}

func (t *Target) use(ctx context.Context, do func(redis.Conn) error) error {
	return connect.Use(ctx, t.Dial, func(c redis.Conn) error {
		err := do(c)
		if other := (*inspect.NotLock)(nil); err == nil || errors.As(err, &other) {
			return err
		}
		return fmt.Errorf("%w: %w", redlatch.ErrNotSent, err) // the repair was not sent
	})
}

// AbsentFor is the default for Evict.Absent. Live waiters reconnect within this time.
const AbsentFor = 3 * time.Second

// Evict evicts a waiter from the queue of a fair lock.
type Evict struct {
	Target
	Name  string
	Owner string
	// Absent is how long the waiter must be without a subscriber.
	Absent      time.Duration
	EvenIfAlive bool
}

// Run returns a *Refusal if the waiter is alive, not known to be dead, or not queued.
func (e *Evict) Run(ctx context.Context) (*admin.Eviction, error) {
	out, err := e.run(ctx)
	return out, e.refused(err)
}

func (e *Evict) run(ctx context.Context) (*admin.Eviction, error) {
	if err := e.CheckIsLock(ctx, e.Name); err != nil {
		return nil, err
	}
	if e.EvenIfAlive {
		return admin.ForceEvict(ctx, rfairlock.New(e.Client, e.Name), e.Owner)
	}
	if e.Absent > 0 {
		counts, err := inspect.Listeners(ctx, e.Client, e.Name, e.Owner)
		switch {
		case err != nil:
			return nil, err
		case counts[0] > 0:
			return nil, admin.ErrWaiterAlive
		}
		if err := inspect.Pause(ctx, e.Absent); err != nil {
			return nil, err
		}
	}
	return admin.Evict(ctx, rfairlock.New(e.Client, e.Name), e.Owner)
}

// AllDead evicts all dead waiters in the first places, and ignores Owner. It returns the results of
// EvictDead, or a *Refusal if there are none. With an error, it also returns those already evicted.
func (e *Evict) AllDead(ctx context.Context, places int) (out []admin.Waiter, woken string, err error) {
	if err = e.CheckIsLock(ctx, e.Name); err == nil {
		out, woken, err = EvictDead(ctx, e.Client, inspect.Part{Name: e.Name, First: 1, Last: places}, e.Absent)
	}
	if errors.Is(err, admin.ErrNotCounted) {
		return out, woken, refusef(RefusedUnknown, "lock %q: cannot detect dead waiters: %s", e.Name, inspect.NotCounted(err))
	}
	if err == nil && len(out) == 0 {
		return nil, "", refusef(RefusedAlive, "lock %q: no waiter was evicted: all have a subscriber", e.Name)
	}
	return out, woken, e.refused(err)
}

func (e *Evict) refused(err error) error {
	shown, other := sanitize.Word(e.Owner), (*inspect.NotLock)(nil)
	switch {
	case errors.As(err, &other):
		return refusef(RefusedKind, "%s", other)
	case errors.Is(err, admin.ErrWaiterAlive):
		return refusef(RefusedAlive, "lock %q: the channel of %s has a subscriber, so the waiter is alive and keeps its place", e.Name, shown).
			with("--even-if-alive evicts it anyway; it then requeues at the end")
	case errors.Is(err, admin.ErrNotCounted):
		return refusef(RefusedUnknown, "lock %q: whether %s is alive is unknown: %s", e.Name, shown, inspect.NotCounted(err)).
			with("If you are sure that it is dead, use --even-if-alive")
	case errors.Is(err, admin.ErrNotQueued):
		return refusef(RefusedAbsent, "lock %q: %s is not in the queue", e.Name, shown).
			with("`redlatch status %s` shows the queue", inspect.Args(e.Name))
	}
	return err
}

// EvictDead evicts the waiters in a part of a queue that have no subscriber at two inspections. It returns them in
// queue order, and the owner that was woken, if any. With an error, it also returns those already evicted.
func EvictDead(ctx context.Context, client *redlatch.Client, at inspect.Part, absent time.Duration) ([]admin.Waiter, string, error) {
	dead, err := at.Absent(ctx, client, nil)
	if err == nil && len(dead) > 0 {
		if err = inspect.Pause(ctx, absent); err == nil {
			dead, err = at.Absent(ctx, client, dead)
		}
	}
	if err != nil {
		return nil, "", err
	}
	return EvictAll(ctx, client, at, dead)
}

// EvictAll evicts the owners without a subscriber. It returns the evicted waiters in queue order, and the owner that
// was woken, if any. With an error, it also returns those already evicted.
func EvictAll(ctx context.Context, client *redlatch.Client, at inspect.Part, owners []string) ([]admin.Waiter, string, error) {
	l := hold.Of(rfairlock.New(client, at.Name))
	kind, _ := l.Kind.(fairqueue.Inspected) // succeeds for a fair lock
	err := l.Check(ctx)
	var done *fairqueue.Evictions
	if err == nil {
		e := fairqueue.Eviction{Queues: fairqueue.Of(l.Engine), Kind: kind, Ask: l.Ask}
		done, err = e.All(ctx, owners, at.Last)
	}
	if err != nil {
		err = &redlatch.LockError{Op: "evict", Name: at.Name, Err: err}
	}
	if done == nil {
		return nil, "", err
	}
	out := make([]admin.Waiter, len(done.Out))
	for i, o := range done.Out {
		owner, _ := codec.ParseOwner(o.Was.Owner)
		out[len(out)-1-i] = admin.Waiter{Owner: owner, Text: o.Was.Owner, Position: o.Index + 1, Deadline: o.Was.Deadline, Counted: true}
	}
	return out, done.Woken, err
}
