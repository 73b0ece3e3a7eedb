package limits

import (
	"fmt"
	"math"
	"time"
)

// Max is the longest lease, and the longest wait of a fair lock: 100 years
// of 365 days. A fair lock adds them up over its queue, in milliseconds since
// 1970; with this bound the sums of some three hundred waiters stay within 15
// digits, and so below 2^53: every server computes and prints them exactly.
const Max = 100 * 365 * 24 * time.Hour

// LeastRenewed is the shortest lease that is renewed. A shorter one is lost as soon as a packet is,
// which TCP sends again after 200 ms or more, or when the process pauses for a moment.
const LeastRenewed = time.Second

// longest is the longest duration in whole milliseconds, 292 years: servers and Java know longer
// leases.
const longest = math.MaxInt64 / int64(time.Millisecond)

// FromMillis returns a duration of ms milliseconds, or the longest duration there is.
func FromMillis(ms int64) time.Duration {
	switch {
	case ms > longest:
		return math.MaxInt64
	case ms < -longest:
		return math.MinInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Show returns d in units of unit. The longest durations stand for longer ones.
func Show(d, unit time.Duration) string {
	if d.Milliseconds() >= longest {
		return "more than 292 years"
	}
	return d.Round(unit).String()
}

// Renewed checks a lease that is renewed over the network.
func Renewed(d time.Duration) error {
	if d < LeastRenewed {
		return fmt.Errorf("%w: watchdog timeout of %v is less than %v: the lease is renewed over the network "+
			"(Redisson's default is 30*time.Second, which its configuration calls 30000)", ErrInvalid, d, LeastRenewed)
	}
	return nil
}

// Lease returns a lease as whole milliseconds, the rest cut off as Java's toMillis does.
// What would be sent as zero or less, which Redis takes as a request to delete the lock,
// and what is above [Max] gives an error.
func Lease(d time.Duration) (int64, error) {
	switch {
	case d > 0 && d < time.Millisecond: // as a number without its unit is, from Redisson's tryLock(10, 60, SECONDS)
		return 0, fmt.Errorf("%w: a lease of %v is less than a millisecond: write a unit, as in 60*time.Second", ErrInvalid, d)
	case d < time.Millisecond:
		return 0, fmt.Errorf("%w: a lease of %v is less than a millisecond", ErrInvalid, d)
	case d > Max:
		return 0, fmt.Errorf("%w: a lease of %v is more than 100 years", ErrInvalid, d)
	}
	return d.Milliseconds(), nil
}
