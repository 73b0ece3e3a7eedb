// Package rsemaphore provides Redisson's semaphores, which limit how many callers across all
// processes work concurrently. [Expirable] is RPermitExpirableSemaphore: its permits have IDs and
// leases, which are renewed until [Hold.Release] and expire if the holder dies.
//
//	crawlers := rsemaphore.NewExpirable(client, "crawlers")
//	_, err := crawlers.TrySetPermits(ctx, 3) // unless another program has
//	err = crawlers.Do(ctx, 1, crawl)
//
// [Semaphore] is RSemaphore, which only counts: a dead process's permits are lost. Use it only to
// share a semaphore with Java programs.
//
// An Expirable never grants more permits than it has, provided that the server keeps the key and
// the clocks are synchronized. A client whose clock is two thirds of a lease ahead takes permits
// from live holders. See docs/reliability.md.
//
// The callers of one client are served in order, except that a caller that needs fewer permits may
// overtake one for which too few are available, which can starve. Callers in different processes are
// not ordered.
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

func waitOf(opts []rlock.Option, try bool) (wait time.Duration, bounded bool, err error) {
	if len(opts) == 0 { // does not allocate
		return 0, false, nil
	}
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
		err = fmt.Errorf("%w: Semaphore supports only WithWait; use NewExpirable for leases", redlatch.ErrInvalid)
	case bounded && try:
		err = fmt.Errorf("%w: TryAcquire does not wait; use Acquire with WithWait", redlatch.ErrInvalid)
	default:
		err = hold.CheckWait(wait)
	}
	return wait, bounded, err
}

const maxPermits = 1000

// maxCount is the maximum number of permits, because Redisson uses an int.
const maxCount = math.MaxInt32

// ErrTooMany is returned if a call requests more permits than an [Expirable] has, including
// acquired ones. It wraps redlatch.ErrInvalid.
var ErrTooMany = fmt.Errorf("%w: more permits than the semaphore has", redlatch.ErrInvalid)

func checkCount(n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%w: invalid number of permits %d: must be from %d to %d", redlatch.ErrInvalid, n, least, most)
	}
	return nil
}

// errNotSet explains a wait for a semaphore that does not exist.
var errNotSet = errors.New("the semaphore was never set or was deleted: call TrySetPermits")

func named(op string, err error) error {
	var failed *redlatch.LockError
	if !errors.As(err, &failed) {
		return err
	}
	renamed := *failed
	renamed.Op = op
	renamed.TTL = max(renamed.TTL, 0) // NoTTL is meaningless for a semaphore
	var answer *transport.ServerError
	if errors.As(err, &answer) && (strings.Contains(answer.Text, "not an integer") || strings.Contains(answer.Text, "overflow")) {
		renamed.Err = fmt.Errorf("%w: the key must be a number of permits in the valid range: %w", redlatch.ErrWrongType, renamed.Err)
	} else if errors.Is(err, redlatch.ErrWrongType) {
		renamed.Err = fmt.Errorf("%w: a semaphore's key must be a number, and its permits' key a sorted set", renamed.Err)
	}
	return &renamed
}

func decoded[T any](op, name string, answer any, err error, decode func(any) (T, error)) (result T, _ error) {
	if err != nil {
		return result, err
	}
	result, err = decode(answer)
	return result, failed(op, name, err)
}

func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return named(op, &redlatch.LockError{Op: op, Name: name, Err: err})
}
