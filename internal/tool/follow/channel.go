package follow

import (
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// channelPrefix is what the channels of locks begin with.
var channelPrefix = strings.TrimSuffix(codec.LockChannel("{"), "{")

// Patterns returns the patterns of the channels of the locks whose names match, each
// channel being matched by one of them at most. They match other channels as well.
func Patterns(pattern string) []string {
	if !listing.IsPattern(pattern) {
		channel := listing.Literal(codec.LockChannel(pattern))
		return []string{channel, channel + ":*"}
	}
	begins := pattern[:strings.IndexAny(pattern, `*?[\`)]
	switch {
	case begins == "":
		return []string{channelPrefix + "*"}
	case begins[0] == '{':
		return []string{channelPrefix + begins + "*"}
	}
	// Names without a brace of their own are put in braces, others are not.
	return []string{channelPrefix + "{" + begins + "*", channelPrefix + begins + "*"}
}

// Parse returns the name of the lock that a channel is of, and, when it calls one
// waiter of a fair lock, that waiter's owner. By the brace rule the channels of the
// names a and {a} are one: it is taken for that of a.
func Parse(channel string) (name, owner string) {
	rest := strings.TrimPrefix(channel, channelPrefix)
	if i := strings.LastIndexByte(rest, ':'); i > 0 {
		if i = strings.LastIndexByte(rest[:i], ':'); i > 0 {
			if _, err := redlatch.ParseOwner(rest[i+1:]); err == nil {
				rest, owner = rest[:i], rest[i+1:]
			}
		}
	}
	return listing.Unbraced(rest), owner
}
