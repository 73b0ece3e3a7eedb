package limits

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/hashslot"
)

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

// ClusterName checks a mapped lock name for use in a Redis Cluster. On top of [Name] it
// refuses names whose channel, queue, timeout set and latch have another hash tag than the
// lock itself. Such a lock could be taken, which needs one key, but not released, which
// needs two in one slot. The names refused have an opening brace without a proper tag
// after it, as in "a{b" or "{}x", or a lone closing one, as in "a}b".
func ClusterName(name string) error {
	if err := Name(name); err != nil {
		return err
	}
	return OneSlot(name)
}

// OneSlot is what [ClusterName] checks beyond [Name].
func OneSlot(name string) error {
	// Package codec derives all keys and channels as a prefix without braces, a colon, and
	// the name, in braces of its own if it has no opening one.
	derived := ":" + name
	if !strings.Contains(name, "{") {
		derived = ":{" + name + "}"
	}
	if own, of := hashslot.Tag(name), hashslot.Tag(derived); own != of {
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
