package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// Why nothing was done. Those of locks are in the JSON of redlatch unlock.
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

// Refusal is the error of a repair that was not done, because it would not be right.
type Refusal struct {
	// Why is one of the constants.
	Why string
	// Text says why, in words.
	Text string
	// Hint is what to type for redlatch to do it all the same, "" for nothing.
	Hint string
}

// Error has the text and the hint.
func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Text
	}
	return r.Text + ". " + r.Hint
}

func refusef(why, format string, args ...any) *Refusal {
	return &Refusal{Why: why, Text: fmt.Sprintf(format, args...)}
}

// with returns r with a hint.
func (r *Refusal) with(format string, args ...any) *Refusal {
	r.Hint = fmt.Sprintf(format, args...)
	return r
}

// isFree says that there is no holder to take the lock from.
func isFree(name string) *Refusal { return refusef(RefusedFree, "lock %q is free", name) }

// IsFree reports whether err says that the lock was free.
func IsFree(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Why == RefusedFree
}

// Target is a server with locks.
type Target struct {
	// Client asks and repairs.
	Client *redlatch.Client
	// Dial is for labels and numbers of subscribers.
	Dial connect.Dialer
}

// CheckIsLock returns an *inspect.NotLock for a name that is that of a hash that is no lock. It is
// short for the server: an inspection reads all of a hash.
func (t *Target) CheckIsLock(ctx context.Context, name string) error {
	return t.use(ctx, func(c redis.Conn) error { return inspect.Glance(c, name) })
}

// use calls do with a connection to read from.
func (t *Target) use(ctx context.Context, do func(redis.Conn) error) error {
	return connect.Use(ctx, t.Dial, func(c redis.Conn) error {
		err := do(c)
		if other := (*inspect.NotLock)(nil); err == nil || errors.As(err, &other) {
			return err
		}
		return fmt.Errorf("%w: %w", redlatch.ErrNotSent, err) // the repair was not
	})
}
