// Package limits checks and derives names, and checks leases and waits. It is pure.
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

// ErrInvalid means that an argument is invalid. All errors of this package wrap it.
var ErrInvalid = errors.New("redlatch: invalid argument")

// Name checks a mapped lock name: it must be non-empty valid UTF-8, so that Java programs can name
// the same lock.
func Name(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the lock's name is empty", ErrInvalid)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the lock's name %s is not valid UTF-8", ErrInvalid, Quote(name))
	}
	return nil
}

// OneSlot checks that a valid name works in Redis Cluster: the lock's other keys and its channel must have the same
// hash tag. Otherwise the lock could be acquired, which uses one key, but not released.
func OneSlot(name string) error {
	if own, of := HashTag(name), HashTag(Derived("", name)); own != of {
		return fmt.Errorf("%w: the lock's name %s does not work in a cluster: its hash tag is %s, but its channel's is %s",
			ErrInvalid, Quote(name), Quote(own), Quote(of))
	}
	return nil
}

// Derived returns prefix, a colon, and the name, which is put in braces unless it has an opening brace.
func Derived(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

const quoteLen = 64

// Quote quotes the first 64 bytes of a string for an error message or a log.
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

// Max is the longest lease, and the longest wait for a fair lock. A fair lock adds waits to a time in milliseconds
// since 1970. With up to 300 waiters, the sum stays below 2^53, so every server computes and prints it exactly.
const Max = 100 * 365 * 24 * time.Hour

// LeastRenewed is the shortest lease that may be renewed. It leaves time for a TCP retransmission,
// which takes 200 ms or more.
const LeastRenewed = time.Second

// longest is a Duration's limit in milliseconds. Servers and Java allow longer leases.
const longest = math.MaxInt64 / int64(time.Millisecond)

// FromMillis limits ms to the range of a Duration.
func FromMillis(ms int64) time.Duration {
	switch {
	case ms > longest:
		return math.MaxInt64
	case ms < -longest:
		return math.MinInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Show formats d in the given unit. Durations at the limit may represent longer ones.
func Show(d, unit time.Duration) string {
	if d.Milliseconds() >= longest {
		return "more than 292 years"
	}
	return d.Round(unit).String()
}

// Renewed checks a renewed lease.
func Renewed(d time.Duration) error {
	if d < LeastRenewed {
		return fmt.Errorf("%w: watchdog timeout of %v is less than %v: the lease is renewed over the network "+
			"(Redisson's default is 30*time.Second, which its configuration calls 30000)", ErrInvalid, d, LeastRenewed)
	}
	return nil
}

// Lease returns a lease in milliseconds, truncated like Java's toMillis. It rejects leases so short that Redis would
// delete the lock, and leases above [Max].
func Lease(d time.Duration) (int64, error) {
	switch {
	case d > 0 && d < time.Millisecond: // a number without its unit, as in Redisson's tryLock(10, 60, SECONDS)
		return 0, fmt.Errorf("%w: lease %v must be at least 1ms: add a unit, as in 60*time.Second", ErrInvalid, d)
	case d < time.Millisecond:
		return 0, fmt.Errorf("%w: lease %v must be at least 1ms", ErrInvalid, d)
	case d > Max:
		return 0, fmt.Errorf("%w: a lease of %v is more than 100 years", ErrInvalid, d)
	}
	return d.Milliseconds(), nil
}

const slots = 16384

// HashSlot returns the hash slot of a key or shard channel.
func HashSlot(key string) int { return int(crc16(HashTag(key))) % slots }

// HashTag returns the part of key that Redis hashes: between the first '{' and the next '}', or the
// whole key if that is empty or missing.
func HashTag(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	length := strings.IndexByte(key[open+1:], '}')
	if length <= 0 {
		return key
	}
	return key[open+1 : open+1+length]
}

// crc16 is the XMODEM variant: polynomial 0x1021, initial value 0, no reflection.
func crc16(text string) uint16 {
	var crc uint16
	for i := range len(text) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^text[i]]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()
