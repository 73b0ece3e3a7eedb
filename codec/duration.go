package codec

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrBadLease reports a lease that cannot be sent: less than a millisecond,
	// or more than [MaxLease].
	ErrBadLease = errors.New("redlatch: bad lease")

	// ErrBadWait reports a wait of neither zero nor at least a millisecond, and a fair
	// lock's that cannot be sent: less than a millisecond, or more than [MaxLease].
	ErrBadWait = errors.New("redlatch: bad wait")
)

// MaxLease is the longest lease, and the longest wait of a fair lock: 100 years
// of 365 days. A fair lock adds them up over its queue, in milliseconds since
// 1970; with this bound the sums of some three hundred waiters stay within 15
// digits, and so below 2^53: every server computes and prints them exactly.
const MaxLease = 100 * 365 * 24 * time.Hour

// NoTTL is the time left of a key that never expires. It is negative.
const NoTTL time.Duration = -1

// NoKey is the time left of a key that does not exist. It is negative and less
// than [NoTTL].
const NoKey time.Duration = -2

// LeaseMillis returns a lease as whole milliseconds, the rest cut off as Java's
// toMillis does. What would be sent as zero or less, which Redis takes as a
// request to delete the lock, and what is above [MaxLease] gives an error that
// wraps [ErrBadLease].
func LeaseMillis(lease time.Duration) (int64, error) { return millis(lease, ErrBadLease) }

// WaitMillis returns the wait that a fair waiter announces as whole
// milliseconds, the rest cut off. Less than a millisecond or more than
// [MaxLease] gives an error that wraps [ErrBadWait].
func WaitMillis(wait time.Duration) (int64, error) { return millis(wait, ErrBadWait) }

func millis(d time.Duration, bad error) (int64, error) {
	switch {
	case d < time.Millisecond:
		return 0, fmt.Errorf("%w: %v is less than a millisecond", bad, d)
	case d > MaxLease:
		return 0, fmt.Errorf("%w: %v is more than 100 years", bad, d)
	}
	return d.Milliseconds(), nil
}
