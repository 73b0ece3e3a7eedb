// Package builtin has the part of the transport contract that only the engine and the built-in
// transports share.
package builtin

import (
	"context"
	"errors"
	"strings"

	"github.com/redlatch/redlatch/transport"
)

// Leader is implemented by transports that can do the I/O of a call on its caller's goroutine while
// no other call is in progress, which saves goroutine switches.
type Leader interface {
	// Leads reports whether outermost is this transport, so that Lead may be called. A wrapper that
	// embeds a transport inherits a Lead that bypasses the wrapper's Start; Leads then returns
	// false.
	Leads(outermost transport.Transport) bool

	// Lead is Start for a caller that only waits for the call: it may write the call and read
	// the reply on the caller's goroutine. It returns when done has run, ctx ends, Interrupt
	// was called, or other calls need the connection; done then runs later, as with Start. It
	// does not wait for a connection that is missing or in use. caller must not be nil.
	Lead(ctx context.Context, call *transport.Call, done transport.Done, caller Caller)

	// Interrupt makes a waiting Lead of call return immediately. The call continues. It does
	// not block and is safe for concurrent use.
	Interrupt(call *transport.Call)
}

// Caller is the caller of [Leader.Lead]. Its methods run on the goroutine that called Lead.
type Caller interface {
	// Started is called once, before the wait for the reply. A call started later, to the same
	// server, is sent later.
	Started()
	// Waits reports whether the caller still waits; if not, Lead returns. After a change to
	// false, the caller calls Interrupt.
	Waits() bool
}

// IsFull reports whether err is the error of a server at its connection limit, which does not run
// the command and closes the connection.
func IsFull(err error) bool {
	var refusal *transport.ServerError
	return errors.As(err, &refusal) && strings.HasPrefix(refusal.Text, "ERR max number of clients")
}
