// Package engine is the part of a client that every kind of lock uses: it runs calls, keeps
// the client's state, and shuts it down. It knows no kind of lock and no waiting strategy.
//
// An [Attempt] is one call and its caller's wait for the reply. The script always runs to
// completion; a context, the command timeout or Close ends only the wait, with an error that
// wraps ErrUncertain. The attempt's [Resolver] then receives either the late reply or, if the
// connection was lost, a request for an [InDoubt].
//
// An [InDoubt] is a call that may have run. It is resolved in the background: its connection is
// killed if the server permits that, and its effect is undone until the server's answer is
// certain, or until the server has answered for one lease.
package engine
