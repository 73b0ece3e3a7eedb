package follow

import (
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// family is a kind of channels: those of the plain, fair and fenced locks, or those of
// read/write locks.
type family struct {
	prefix string
	// calls is true when it has channels for single waiters, too.
	calls bool
}

var (
	lockChannels      = family{prefix: strings.TrimSuffix(codec.LockChannel("{"), "{"), calls: true}
	readWriteChannels = family{prefix: strings.TrimSuffix(codec.ReadWriteChannel("{"), "{")}
)

// Patterns returns the patterns of the channels of all locks whose names match, each channel
// being matched by one of them at most. They match other channels as well.
func Patterns(pattern string) []string {
	return append(lockChannels.patterns(pattern), readWriteChannels.patterns(pattern)...)
}

// patterns are those of the channels of the family.
func (f *family) patterns(pattern string) []string {
	if !inspect.IsPattern(pattern) {
		channel := inspect.Literal(f.channel(pattern))
		if !f.calls {
			return []string{channel}
		}
		return []string{channel, channel + ":*"}
	}
	begins := pattern[:strings.IndexAny(pattern, `*?[\`)]
	switch {
	case begins == "":
		return []string{f.prefix + "*"}
	case begins[0] == '{':
		return []string{f.prefix + begins + "*"}
	}
	// Names without a brace of their own are put in braces, others are not.
	return []string{f.prefix + "{" + begins + "*", f.prefix + begins + "*"}
}

// channel is that of the lock with a name.
func (f *family) channel(name string) string {
	if f.calls {
		return codec.LockChannel(name)
	}
	return codec.ReadWriteChannel(name)
}

// Parse returns the name of the lock that a channel is of, and, when it calls one
// waiter of a fair lock, that waiter's owner. By the brace rule the channels of the
// names a and {a} are one: it is taken for that of a.
func Parse(channel string) (name, owner string) {
	if rest, is := strings.CutPrefix(channel, readWriteChannels.prefix); is {
		return inspect.Unbraced(rest), ""
	}
	rest := strings.TrimPrefix(channel, lockChannels.prefix)
	if i := strings.LastIndexByte(rest, ':'); i > 0 {
		if i = strings.LastIndexByte(rest[:i], ':'); i > 0 {
			if _, err := redlatch.ParseOwner(rest[i+1:]); err == nil {
				rest, owner = rest[:i], rest[i+1:]
			}
		}
	}
	return inspect.Unbraced(rest), owner
}
