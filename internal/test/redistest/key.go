package redistest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
)

var keyCounter atomic.Int64

// Key returns a lock name that no other call returns, in this process or
// another: the test's name, so that it is found in a server's MONITOR, a number
// and a random suffix. It holds only letters, digits, '-' and '_'.
func Key(tb testing.TB) string {
	tb.Helper()
	const keep = 60
	name := strings.Map(plain, tb.Name())
	name = name[:min(len(name), keep)]
	return fmt.Sprintf("%s-%d-%08x", name, keyCounter.Add(1), rand.Uint32()) //nolint:gosec // uniqueness, not secrecy
}

// plain replaces what needs quoting somewhere.
func plain(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
		return r
	}
	return '-'
}
