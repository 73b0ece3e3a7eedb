package transport

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1; nothing here relies on it for security.
	"encoding/hex"
	"sync/atomic"
)

// Call is a request to the server: a script or a command with its arguments. Its fields must not
// change between [Transport.Start] and done. A Call can be used only once; after that, it may be
// overwritten.
type Call struct {
	// Script is run with EVALSHA, or EVAL if the server does not know it. If nil, Command is
	// sent.
	Script *Script

	// Command is the name of a command, such as HGET, if Script is nil.
	Command string

	// NumKeys is the number of leading Args that are keys, all in one hash slot.
	NumKeys int

	// Args are the keys and then the arguments: string, []byte, int or int64. Boxed values may
	// be shared between calls.
	Args []any

	// Urgent calls overtake queued calls. Renewals and releases are urgent.
	Urgent bool

	// Vital calls overtake urgent calls and ignore limits on calls in flight. Renewals are vital.
	// They are also Urgent, for transports that do not distinguish the two.
	Vital bool

	state atomic.Uint32
	conn  atomic.Int64
}

const (
	callQueued uint32 = iota
	callWithdrawn
	callSent
	callAbandoned
)

// Key returns the i-th key, or "".
func (c *Call) Key(i int) string {
	if i < 0 || i >= c.NumKeys || i >= len(c.Args) {
		return ""
	}
	switch k := c.Args[i].(type) {
	case string:
		return k
	case []byte:
		return string(k)
	}
	return ""
}

// Name returns the name of the script or the command, for logs and errors.
func (c *Call) Name() string {
	if c.Script != nil {
		return c.Script.name
	}
	return c.Command
}

// Abandon records that the caller has stopped waiting. It returns true if the call has not been
// sent. In that case, it never will be, and done gets [ErrNotSent]. Otherwise done still runs with
// the outcome. It is safe for concurrent use.
func (c *Call) Abandon() bool {
	for {
		switch s := c.state.Load(); s {
		case callQueued:
			if c.state.CompareAndSwap(s, callWithdrawn) {
				return true
			}
		case callSent:
			if c.state.CompareAndSwap(s, callAbandoned) {
				return false
			}
		default:
			return s == callWithdrawn
		}
	}
}

// Withdraw is like [Call.Abandon], but does nothing if the call was sent, because the caller keeps
// waiting.
func (c *Call) Withdraw() bool {
	return c.state.CompareAndSwap(callQueued, callWithdrawn)
}

// Claim must be called by the transport before it writes the call to a connection. conn is the
// connection's CLIENT ID, or 0 if it is unknown. If Claim returns false, the call was withdrawn: it
// must not be written, and done gets [ErrNotSent]. A call may be claimed again, for example to
// retry it as EVAL after NOSCRIPT.
func (c *Call) Claim(conn int64) bool {
	c.conn.Store(conn) // before the state becomes callSent
	if c.state.CompareAndSwap(callQueued, callSent) {
		return true
	}
	if c.state.Load() == callWithdrawn {
		c.conn.Store(0)
		return false
	}
	return true
}

// Abandoned reports whether the caller stopped waiting after the call was sent. In that case,
// transports must not run done on the reader's goroutine.
func (c *Call) Abandoned() bool { return c.state.Load() == callAbandoned }

// Conn returns the server's ID of the connection on which the call was last sent, or 0.
func (c *Call) Conn() int64 { return c.conn.Load() }

// Script is an immutable Lua script and its digest.
type Script struct {
	name string
	text string
	sha  string
}

// NewScript returns a script. The name is used only in logs and errors.
func NewScript(name, text string) *Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return &Script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

// Name returns the script's name.
func (s *Script) Name() string { return s.name }

// Text returns the Lua text.
func (s *Script) Text() string { return s.text }

// SHA returns the hexadecimal SHA-1 of the text, for EVALSHA.
func (s *Script) SHA() string { return s.sha }
