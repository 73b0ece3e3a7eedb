package acl

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
)

// Pattern is the right to some keys or channels.
type Pattern struct {
	sign    string                   // as in ACL SETUSER: ~ for keys, & for channels
	of      func(name string) string // key or channel of a lock; nil if it is the same for all names
	fixed   string                   // the pattern if of is nil; ends in a star
	bracing bool                     // for names that have braces
}

// The patterns that the needs refer to. Scripts declare channels as keys, so that a cluster can
// route them.
var (
	locks             = Pattern{sign: "~", of: func(name string) string { return name }}
	locksInBraces     = Pattern{sign: "~", of: inBraces, bracing: true}
	channelsAsKeys    = Pattern{sign: "~", of: codec.LockChannel}
	queues            = Pattern{sign: "~", of: codec.QueueKey}
	timeouts          = Pattern{sign: "~", of: codec.TimeoutKey}
	tokens            = Pattern{sign: "~", of: protocol.TokenKey}
	rwAsKeys          = Pattern{sign: "~", of: protocol.ReadWriteChannel}
	rwChannels        = Pattern{sign: "&", of: protocol.ReadWriteChannel}
	countDownsAsKeys  = Pattern{sign: "~", of: protocol.CountDownChannel}
	countDowns        = Pattern{sign: "&", of: protocol.CountDownChannel}
	latches           = Pattern{sign: "~", of: func(name string) string { return protocol.LatchKey(name, "") }}
	labels            = Pattern{sign: "~", fixed: "redlatch:label:*"}
	channels          = Pattern{sign: "&", of: codec.LockChannel}
	semaphoresAsKeys  = Pattern{sign: "~", of: protocol.SemaphoreChannel}
	semaphoreChannels = Pattern{sign: "&", of: protocol.SemaphoreChannel}
	// A user with limited channels may PSUBSCRIBE only to exactly the patterns that it was given. `redlatch watch` uses
	// these.
	allChannels          = Pattern{sign: "&", fixed: "redisson_lock__channel:*"}
	allRWChannels        = Pattern{sign: "&", fixed: "redisson_rwlock:*"}
	allSemaphoreChannels = Pattern{sign: "&", fixed: "redisson_sc:*"}
	allCountDowns        = Pattern{sign: "&", fixed: "redisson_countdownlatch__channel__*"}
)

func inBraces(name string) string { return "{" + name + "}" }

// Word returns the rule for ACL SETUSER, for locks whose names start with prefix.
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

// CanHold reports whether a rule of ACL SETUSER can contain text. Servers reject white space, and
// redis-cli removes quotes.
func CanHold(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r == '"' || r == '\'' || unicode.IsSpace(r) || !unicode.IsGraphic(r)
	})
}

// Example returns the key or channel of a lock.
func (p *Pattern) Example(name string) string {
	if p.of == nil {
		return strings.TrimSuffix(p.fixed, "*") + name
	}
	return p.of(name)
}

// IsChannels reports whether the pattern is for channels instead of keys.
func (p *Pattern) IsChannels() bool { return p.sign == "&" }

// Listened returns the argument of PSUBSCRIBE for the pattern, or "" if the user subscribes to the
// channels individually.
func (p *Pattern) Listened() string {
	if p.IsChannels() {
		return p.fixed
	}
	return ""
}

// IsInBraces reports whether the pattern is for names that have braces.
func (p *Pattern) IsInBraces() bool { return p.bracing }

// AppliesTo reports whether names that start with prefix need the pattern. A pattern for braces is not needed if the
// prefix has a brace, or if another pattern covers all names.
func (p *Pattern) AppliesTo(prefix string) bool {
	return !p.bracing || prefix != "" && !strings.Contains(prefix, "{")
}

func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
