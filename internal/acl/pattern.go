package acl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch/codec"
)

// Pattern is the right to some keys, or to some channels.
type Pattern struct {
	sign string                   // as in ACL SETUSER: ~ for keys, & for channels
	of   func(name string) string // what belongs to the lock name; nil: fixed is all
	// fixed is the same for all names, and ends with a star.
	fixed string
	// bracing is true for names that bring braces of their own.
	bracing bool
}

// The patterns that needs are made of. Scripts name channels as keys, so that a
// cluster can route them.
var (
	locks             = Pattern{sign: "~", of: func(name string) string { return name }}
	locksInBraces     = Pattern{sign: "~", of: inBraces, bracing: true}
	channelsAsKeys    = Pattern{sign: "~", of: codec.LockChannel}
	queues            = Pattern{sign: "~", of: codec.QueueKey}
	timeouts          = Pattern{sign: "~", of: codec.TimeoutKey}
	tokens            = Pattern{sign: "~", of: codec.TokenKey}
	rwAsKeys          = Pattern{sign: "~", of: codec.ReadWriteChannel}
	rwChannels        = Pattern{sign: "&", of: codec.ReadWriteChannel}
	countDownsAsKeys  = Pattern{sign: "~", of: codec.CountDownChannel}
	countDowns        = Pattern{sign: "&", of: codec.CountDownChannel}
	latches           = Pattern{sign: "~", of: func(name string) string { return codec.LatchKey(name, "") }}
	labels            = Pattern{sign: "~", fixed: "redlatch:label:*"}
	channels          = Pattern{sign: "&", of: codec.LockChannel}
	semaphoresAsKeys  = Pattern{sign: "~", of: codec.SemaphoreChannel}
	semaphoreChannels = Pattern{sign: "&", of: codec.SemaphoreChannel}
	// A user whose channels are bounded may use PSUBSCRIBE with just the patterns that
	// bound them, and `redlatch watch` uses these.
	allChannels   = Pattern{sign: "&", fixed: "redisson_lock__channel:*"}
	allRWChannels = Pattern{sign: "&", fixed: "redisson_rwlock:*"}

	allSemaphoreChannels = Pattern{sign: "&", fixed: "redisson_sc:*"}
	allCountDowns        = Pattern{sign: "&", fixed: "redisson_countdownlatch__channel__*"}
)

func inBraces(name string) string { return "{" + name + "}" }

// Word returns the pattern in the words of ACL SETUSER, for locks whose names begin
// with prefix.
func (p *Pattern) Word(prefix string) string {
	if p.of == nil {
		return p.sign + p.fixed
	}
	whole := p.of(globbed(prefix) + "*")
	if i := strings.LastIndex(whole, "*"); i >= 0 {
		whole = whole[:i+1]
	}
	return p.sign + whole
}

// CanHold reports whether a word of ACL SETUSER can hold text. Servers refuse words with white
// space, and redis-cli splits a line at it and removes quotes.
func CanHold(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r == '"' || r == '\'' || unicode.IsSpace(r) || !unicode.IsGraphic(r)
	})
}

// Example returns a key or channel that a user with the pattern may use: that of the
// lock name, where the prefix of the pattern is the beginning of name.
func (p *Pattern) Example(name string) string {
	if p.of == nil {
		return strings.TrimSuffix(p.fixed, "*") + name
	}
	return p.of(name)
}

// IsChannels reports whether the pattern is one of channels, and not of keys.
func (p *Pattern) IsChannels() bool { return p.sign == "&" }

// Listened returns the pattern that the user listens to as it is, with PSUBSCRIBE, ""
// when it listens to channels one by one.
func (p *Pattern) Listened() string {
	if p.IsChannels() {
		return p.fixed
	}
	return ""
}

// IsInBraces reports whether the pattern is for names that bring braces of their own.
func (p *Pattern) IsInBraces() bool { return p.bracing }

// AppliesTo reports whether names that begin with prefix have what the pattern is
// about: with a brace in the prefix they bring no others, and without a prefix another
// pattern has them all.
func (p *Pattern) AppliesTo(prefix string) bool {
	return !p.bracing || prefix != "" && !strings.Contains(prefix, "{")
}

// globbed returns text that a pattern takes for itself.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
