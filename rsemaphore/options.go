// Package rsemaphore provides Redisson's semaphores, which limit how many callers in all processes work at
// a time. Permits of [NewExpirable], RPermitExpirableSemaphore, have ids and leases, and return when their holder
// dies. [New] only counts, as RSemaphore: its permits are lost with their holder. Use it only where Java
// programs already do.
//
//	            Acquire                       granted
//	caller ───────────────▶ tries, or waits ─────────▶ live ──Release──▶ released
//	                             │ gave up               │ ──LetExpire──▶ left to its lease
//	                             ▼                       │ ──a permit lost, or not renewed──▶ lost
//	                         no permits                  └ ──maximum──▶ left to its lease, or Release
//
// # Permits with ids
//
// One call acquires n permits, all or none; its [Hold] has an id for each. The watchdog renews their leases
// together until Release; those of a dead process return after one lease. Redisson does not renew permits:
// without a lease a permit stays away forever if its holder dies. If one permit of a hold is lost, because
// a client released its id or its key was deleted, the whole hold is lost, and the others are released.
// Holds are not reentrant: a goroutine that holds the only permit and acquires another waits for itself.
//
// # Number of permits
//
// [Expirable.TrySetPermits] creates the semaphore, [Expirable.SetPermits] changes the number at any time.
// Callers wait for a semaphore that was never set, and get [ErrTooMany] for more permits than there are.
// AddPermits, and a deleted or evicted key that is set again, can make more permits than were set.
//
// # Order
//
// The callers of one client are served in the order of their calls, except that a caller that needs many
// permits does not hold up callers behind it: see [WithStrictOrder]. Processes are not ordered.
//
// # Clocks
//
// The end of a lease is stored in milliseconds since 1970 by the clock of the client that set it, and each
// client compares it with its own clock. A client whose clock is ahead by more than a permit's remaining
// lease, two thirds of it or more if it is renewed, takes a permit that is held. Synchronize clocks, or use
// redlatch.WithServerTime where no Redisson takes part. An offset of more than a second is logged.
//
// # Counters
//
// A counter knows neither the holders nor the number of acquired permits. The permits of a dead process are
// lost until [Semaphore.AddPermits]. If a reply is lost, Acquire and Release return redlatch.ErrUncertain; no call
// is sent twice. redlatch.WithReplicaSync has no effect.
package rsemaphore

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Option configures a semaphore.
type Option func(*shape)

type shape struct{ strict bool }

// WithStrictOrder serves the callers of this client strictly in the order of their calls: while one waits
// for many permits, callers behind it wait even if the available permits are enough for them. By default
// they may go first, so that no permit is unused; then a caller for many permits can wait as long as others
// keep acquiring. Processes are not ordered.
func WithStrictOrder() Option { return func(s *shape) { s.strict = true } }

func shapeOf(opts []Option) (s shape) {
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	return s
}

// waitOf returns the wait of a counter, whose acquisitions have no other terms.
func waitOf(opts []rlock.Option, try bool) (wait time.Duration, bounded bool, err error) {
	var t hold.Terms
	for _, o := range opts {
		if o != nil {
			o(&t)
		}
	}
	wait, bounded = t.Bound, t.Bounded
	t.Bound, t.Bounded = 0, false
	switch {
	case t != hold.Terms{}:
		err = fmt.Errorf("%w: a counter takes only WithWait: its permits have no leases, see NewExpirable", redlatch.ErrInvalid)
	case bounded && try:
		err = fmt.Errorf("%w: TryAcquire does not wait; use Acquire with WithWait", redlatch.ErrInvalid)
	default:
		err = hold.CheckWait(wait)
	}
	return wait, bounded, err
}

// maxPermits is the maximum number of permits with IDs in one call.
const maxPermits = 1000

// maxCount is the maximum number of permits, that of Java's int.
const maxCount = math.MaxInt32

// ErrTooMany means that the semaphore has fewer permits, acquired ones included: the caller would wait
// forever. It wraps redlatch.ErrInvalid. Callers wait for a semaphore without permits.
var ErrTooMany = fmt.Errorf("%w: more permits than the semaphore has", redlatch.ErrInvalid)

// checkCount checks a number of permits.
func checkCount(n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%w: %d permits, not %d to %d", redlatch.ErrInvalid, n, least, most)
	}
	return nil
}

// errNotSet is the hint for callers that wait for a semaphore that does not exist.
var errNotSet = errors.New("the semaphore was never set or was deleted: call TrySetPermits")

// named replaces the operation of a lock's error by that of a semaphore. It returns nil for nil.
func named(op string, err error) error {
	var failed *redlatch.LockError
	if !errors.As(err, &failed) {
		return err
	}
	renamed := *failed
	renamed.Op = op
	renamed.TTL = max(renamed.TTL, 0) // NoTTL has no meaning for a semaphore
	var answer *transport.ServerError
	if errors.As(err, &answer) && (strings.Contains(answer.Text, "not an integer") || strings.Contains(answer.Text, "overflow")) {
		renamed.Err = fmt.Errorf("%w: the key must be a number of permits, and stay one: %w", redlatch.ErrWrongType, renamed.Err)
	} else if errors.Is(err, redlatch.ErrWrongType) {
		renamed.Err = fmt.Errorf("%w: a semaphore's key is a number, and that of its permits a sorted set", renamed.Err)
	}
	return &renamed
}

// decoded decodes the reply of an operation unless it has failed.
func decoded[T any](op, name string, answer any, err error, decode func(any) (T, error)) (result T, _ error) {
	if err != nil {
		return result, err
	}
	result, err = decode(answer)
	return result, failed(op, name, err)
}

// failed is named for an error without a name.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return named(op, &redlatch.LockError{Op: op, Name: name, Err: err})
}
