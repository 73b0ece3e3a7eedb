// Package limits says which names, leases and waits a lock can have. It is pure.
package limits

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrInvalid says that an argument cannot be used. All errors of this package wrap it.
var ErrInvalid = errors.New("redlatch: invalid argument")

// Name checks a mapped lock name. An error says what is wrong: the name is empty, or it
// is not valid UTF-8, so that a Java program has no string to name the same lock by. All
// other names are allowed.
func Name(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the lock's name is empty", ErrInvalid)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the lock's name %s is not valid UTF-8", ErrInvalid, Quote(name))
	}
	return nil
}

// OneSlot checks a name that passes [Name] for use in a Redis Cluster. It refuses names whose
// channel, queue, timeout set and latch have another hash tag than the lock itself. Such a lock
// could be taken, which needs one key, but not released, which needs two in one slot. The names
// refused have an opening brace without a proper tag after it, as in "a{b" or "{}x", or a lone
// closing one, as in "a}b".
func OneSlot(name string) error {
	// Package codec derives all keys and channels as a prefix without braces, a colon, and
	// the name, in braces of its own if it has no opening one.
	derived := ":" + name
	if !strings.Contains(name, "{") {
		derived = ":{" + name + "}"
	}
	if own, of := HashTag(name), HashTag(derived); own != of {
		return fmt.Errorf("%w: the lock's name %s does not work in a cluster: its hash tag is %s, its channel's is %s",
			ErrInvalid, Quote(name), Quote(own), Quote(of))
	}
	return nil
}

// quoteLen bounds how much of a foreign text an error message repeats.
const quoteLen = 64

// Quote quotes a name or another foreign text for an error message or a log, its
// first 64 bytes only.
func Quote(text string) string {
	if len(text) <= quoteLen {
		return strconv.Quote(text)
	}
	end := quoteLen
	for end > quoteLen-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strconv.Quote(text[:end]) + "..."
}

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
