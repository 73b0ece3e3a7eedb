package codec

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ErrBadName reports a name that no lock can have, or none in a cluster.
var ErrBadName = errors.New("redlatch: bad lock name")

// ValidateName checks a mapped lock name. An error wraps [ErrBadName] and says
// what is wrong: the name is empty, or it is not valid UTF-8, so that a Java
// program has no string to name the same lock by. All other names are allowed.
func ValidateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty", ErrBadName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrBadName, Quote(name))
	}
	return nil
}

// ValidateClusterName checks a mapped lock name for use in a Redis Cluster. On
// top of [ValidateName] it refuses, with an error that wraps [ErrBadName], names
// whose channel, queue, timeout set and latch have another hash tag than the
// lock itself. Such a lock could be taken, which needs one key, but not released,
// which needs two in one slot. The names refused have an opening brace without a
// proper tag after it, as in "a{b" or "{}x", or a lone closing one, as in "a}b".
func ValidateClusterName(name string) error {
	if err := ValidateName(name); err != nil {
		return err
	}
	// Every derived name has the shape of the channel's: the prefixes hold no
	// brace, and what follows the name cannot change its first tag.
	own, derived := hashTag(name), hashTag(LockChannel(name))
	if own != derived {
		return fmt.Errorf("%w: %s does not work in a cluster: its hash tag is %s, its channel's is %s",
			ErrBadName, Quote(name), Quote(own), Quote(derived))
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
