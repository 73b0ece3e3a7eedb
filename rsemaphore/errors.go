package rsemaphore

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/transport"
)

// MaxPermits is how many permits with ids one call can be about.
const MaxPermits = 1000

// maxCount is how many permits a semaphore can have: what Java's int can.
const maxCount = math.MaxInt32

// ErrTooMany says that more permits were asked for than the semaphore has, with those that are
// taken: the caller would wait for ever. Nothing is taken. It wraps redlatch.ErrInvalid. A
// semaphore that has none, or was never set, is waited for.
var ErrTooMany = fmt.Errorf("%w: more permits than the semaphore has", redlatch.ErrInvalid)

// checkCount checks a number of permits.
func checkCount(n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("%w: %d permits, not %d to %d", redlatch.ErrInvalid, n, least, most)
	}
	return nil
}

// What a caller learns that waits for a semaphore without a key.
var (
	errPermitsNotSet = errors.New("the semaphore was never set or was deleted: call TrySetPermits")
	errCounterNotSet = errors.New("the semaphore was never set or was deleted: call TrySet")
)

// named makes an error of a lock one of a semaphore, whose operations have other names. Nil
// stays nil.
func named(op string, err error) error {
	var failed *redlatch.LockError
	if !errors.As(err, &failed) {
		return err
	}
	renamed := *failed
	renamed.Op = op
	renamed.TTL = max(renamed.TTL, 0) // a semaphore that is empty, or was never set, has no lease that never ends
	var answer *transport.ServerError
	if errors.As(err, &answer) && (strings.Contains(answer.Text, "not an integer") || strings.Contains(answer.Text, "overflow")) {
		renamed.Err = fmt.Errorf("%w: the key must be a number of permits, and stay one: %w", redlatch.ErrWrongType, renamed.Err)
	} else if errors.Is(err, redlatch.ErrWrongType) {
		renamed.Err = fmt.Errorf("%w: a semaphore's key is a number, and that of its permits a sorted set", renamed.Err)
	}
	return &renamed
}

// failed is named for an error that has no name yet.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return named(op, &redlatch.LockError{Op: op, Name: name, Err: err})
}
