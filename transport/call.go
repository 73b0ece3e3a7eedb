package transport

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by SHA-1; nothing here relies on it for security.
	"encoding/hex"
	"sync/atomic"
)

// Call is one request to the server, complete but not sent: a script or a
// command with its arguments. Fill it, hand it to [Transport.Start], and leave
// its fields alone until done has run; after that [Call.Reset] makes it ready
// for another use.
type Call struct {
	// Script is run by EVALSHA, or EVAL where the server does not know it yet.
	// With a nil Script, Command is sent as it stands.
	Script *Script

	// Command is the name of a plain command, such as HGET, when Script is nil.
	Command string

	// NumKeys says how many of the leading Args are keys. All keys of a call
	// live in one hash slot.
	NumKeys int

	// Args holds the keys and then the arguments: string, []byte, int or int64
	// only. Values that are sent often may be boxed once and used many times.
	Args []any

	// Urgent calls, renewals and releases, go ahead of the others when many
	// calls wait to be sent.
	Urgent bool

	// Vital calls, renewals, go ahead even of the urgent ones, and are not held back
	// because many calls are on their way: a lock is lost when one comes too late.
	// They are urgent, too, for transports that make no difference.
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

// Reset makes a call whose done has run ready to be filled again. It keeps the
// capacity of Args.
func (c *Call) Reset() {
	clear(c.Args)
	c.Script, c.Command, c.NumKeys, c.Urgent, c.Vital = nil, "", 0, false, false
	c.Args = c.Args[:0]
	c.state.Store(callQueued)
	c.conn.Store(0)
}

// Key returns the i-th key, or "" when there is none.
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

// Name returns the script's name or the command, for logs and errors.
func (c *Call) Name() string {
	if c.Script != nil {
		return c.Script.name
	}
	return c.Command
}

// Abandon says that the caller no longer waits. It returns true when the call
// had not been sent: it is withdrawn for good, and done will run with
// [ErrNotSent]. It returns false when the call may have been sent already: done
// still runs, with whatever comes of it, on a goroutine that may be another
// than the one that reads replies. Safe for concurrent use with the transport.
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

// Withdraw takes the call back if it has not been sent, and reports whether it did:
// then it is as with [Call.Abandon]. Otherwise nothing changes, and the caller waits
// on. Safe for concurrent use with the transport.
func (c *Call) Withdraw() bool {
	return c.state.CompareAndSwap(callQueued, callWithdrawn)
}

// Claim is for transports: they call it directly before they write the call to
// a connection, whose id on the server (CLIENT ID) is conn, 0 if not known. When
// Claim returns false the call was withdrawn: it must not be written, and done
// gets [ErrNotSent]. Claiming a call twice, for instance to repeat it as EVAL
// after NOSCRIPT, is allowed and keeps it sent.
func (c *Call) Claim(conn int64) bool {
	c.conn.Store(conn) // before the state says sent
	if c.state.CompareAndSwap(callQueued, callSent) {
		return true
	}
	if c.state.Load() == callWithdrawn {
		c.conn.Store(0)
		return false
	}
	return true
}

// Abandoned reports whether the caller left after the call was sent. Transports
// use it to run done off the goroutine that reads replies.
func (c *Call) Abandoned() bool { return c.state.Load() == callAbandoned }

// Conn returns the server's id of the connection that the call was last sent
// on, 0 when it was not sent or the id is not known.
func (c *Call) Conn() int64 { return c.conn.Load() }

// Script is a Lua script and the digest that EVALSHA knows it by. It is
// immutable and safe for concurrent use.
type Script struct {
	name string
	text string
	sha  string
}

// NewScript makes a script from its text. The name appears in logs and errors
// only; Redis never sees it.
func NewScript(name, text string) *Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return &Script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

// Name returns the name that the script was made with.
func (s *Script) Name() string { return s.name }

// Text returns the Lua text, for EVAL and SCRIPT LOAD.
func (s *Script) Text() string { return s.text }

// SHA returns the lower-case hexadecimal SHA-1 of the text, for EVALSHA.
func (s *Script) SHA() string { return s.sha }
