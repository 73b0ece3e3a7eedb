// Package transport is the narrow waist between Redlatch and Redis.
//
// Everything Redlatch asks of a server goes through [Transport]: start a call,
// subscribe to a channel, name the publish command, close. The built-in
// transport speaks to one Redis or Valkey server through redigo; others can be
// written over any client in about a hundred lines (docs/transport.md,
// examples/anyclient) and checked with the suite in transporttest.
//
// # The life of a call
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
// A call is asynchronous: [Transport.Start] returns at once, and done runs
// exactly once, whatever happens, also for a call whose caller has left. That
// is what makes it possible to give back a lock that was granted to a caller
// that had stopped waiting: the reply is late, but it is never lost.
//
// # The error contract
//
// The err that done receives is one of four things, told apart with errors.Is
// and errors.As:
//
//   - nil: the reply is the server's answer.
//   - [ErrNotSent]: the call certainly did not run and never will. It may be
//     sent again.
//   - [ErrUncertain]: the call was sent, or may have been, and its reply is
//     lost. It may have run, may be running, or may still run later, when the
//     network delivers what it has held back. It must not be sent again unless
//     running it twice is harmless.
//   - [*ServerError]: the server answered with an error.
//
// [ErrClosed] is wrapped together with ErrNotSent or ErrUncertain when the
// transport was closed under the call.
package transport
