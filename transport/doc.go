// Package transport is the interface between Redlatch and Redis. Implement [Transport] to run locks
// over a client other than go-redis or rueidis. docs/transport.md shows an implementation, and package
// transporttest checks it:
//
//	client, err := redlatch.NewWithTransport(myTransport)
//
// [Transport.Start] returns immediately and done runs exactly once, even if the caller has stopped
// waiting, so that a lock that was granted too late can be released. The err of done is one of:
//
//   - nil: reply is the server's reply.
//   - [ErrNotSent]: the call did not run and never will. It may be retried.
//   - [ErrUncertain]: the call may have been sent, but its reply was lost. It may have run or may
//     still run. Retry it only if it is idempotent.
//   - [*ServerError]: the server replied with an error.
//
// If the transport was closed, the error also wraps [ErrClosed].
package transport
