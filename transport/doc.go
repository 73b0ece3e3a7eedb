// Package transport is the interface between Redlatch and Redis.
//
// Everything that Redlatch does on a server goes through a [Transport]: start a call, subscribe to a
// channel, close. The built-in transports use redigo. Others can be written over any client in about
// a hundred lines (docs/transport.md, examples/anyclient) and checked with the suite in
// transporttest.
//
// # Calls
//
//	new ──Start──▶ queued ──Claim──▶ sent ──────▶ done(reply, err)
//	                 │                │
//	      Abandon, Withdraw        Abandon
//	                 ▼                ▼
//	             withdrawn        abandoned ──late reply──▶ done(reply, err)
//	                 │
//	                 ▼
//	         done(nil, ErrNotSent)
//
// [Transport.Start] returns immediately and done runs exactly once, even if the caller has stopped
// waiting. So a lock that was granted too late can be released.
//
// # Errors
//
// The err of done is one of the following, to be tested with errors.Is and errors.As:
//
//   - nil: the reply is the server's answer.
//   - [ErrNotSent]: the call did not run and never will. It may be sent again.
//   - [ErrUncertain]: the call was sent, or may have been, and its reply is lost. It may have run or
//     still run later, when the network delivers delayed packets. Send it again only if it is
//     idempotent.
//   - [*ServerError]: the server answered with an error.
//
// If the transport was closed, the error also wraps [ErrClosed].
package transport
