// Package builtin contains the part of the transport contract that only the engine and the built-in
// transports use.
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
	// Leads reports whether outermost is this transport. If so, Lead may be called. A wrapper that
	// embeds a transport inherits a Lead that bypasses the wrapper's Start; Leads then returns
	// false.
	Leads(outermost transport.Transport) bool

	// Lead is like Start, but for a caller that only waits for the call. It may write the call and
	// read the reply on the caller's goroutine. It returns when done has been called, ctx has
	// ended, Interrupt was called, or other calls need the connection. If done has not been called
	// by then, it is called later, as with Start. Lead does not wait for the connection if it is
	// missing or in use. caller must not be nil.
	Lead(ctx context.Context, call *transport.Call, done transport.Done, caller Caller)

	// Interrupt makes a Lead that is waiting for call return immediately. The call continues.
	// Interrupt does not block and is safe for concurrent use.
	Interrupt(call *transport.Call)
}

// Caller is the caller of [Leader.Lead]. Its methods run on the goroutine that called Lead.
type Caller interface {
	// Started is called once, before Lead waits for the reply. Calls to the same server that are
	// started later are also sent later.
	Started()
	// Waits reports whether the caller is still waiting. If it is not, Lead returns. When the
	// result changes to false, the caller calls Interrupt.
	Waits() bool
}

// IsFull reports whether err means that the server has reached its connection limit. In that case,
// the server closes the connection without running the command.
func IsFull(err error) bool {
	var refusal *transport.ServerError
	return errors.As(err, &refusal) && strings.HasPrefix(refusal.Text, "ERR max number of clients")
}
