// Package respconn makes connections, with [Dialer] and [NewConn], and reads what a server
// sends on them, and does not trust it, at little cost.
//
// A Redis reply says how long it is before it comes: so many bytes, so many
// elements, and elements within elements. The client library makes room for what is
// announced at once, and calls itself for each level. A server that is broken, or is
// no Redis at all, or is hostile, could have it allocate exabytes, or go down ten
// million levels, and either ends the whole process.
//
// # What may be announced
//
// [Guard] stands between the network and the client library, and above TLS. It
// follows the replies, and keeps none, but on a connection that callers read: there one
// reply is kept until it is complete, within the limits:
//
//	           ┌── "+", "-", ":" ─────────────────────────────┐
//	line ──────┼── "$n": n bytes within the limits ──▶ bulk ──┼──▶ one element done
//	  ▲        ├── "*n": n elements within the limits,        │        │
//	  │        │         one level down ──▶ line              │        │
//	  │        └── anything that is more than a limit ──▶ an error, for good
//	  └─────────────────────────────────────────────────────────────── ┘
//
// The line that announces too much is never let through to its end, so no memory is
// allocated for it. The error wraps [ErrLimit], and the connection is of no use any
// more. The limits are far above what any lock needs; a message of more than 32 MiB
// would cost a subscriber its connection on a server with default settings, too.
//
// [Plain] makes of what was read what callers of a transport see.
//
// # Reading ahead
//
// A read by the client library cannot be given up: one that times out ends its connection.
// After [Guarded.Own] the guard reads by itself, says when a reply is complete, and only then
// is the library asked for it, which returns at once. So one goroutine can begin to wait, and
// another one go on. [Guarded.Sound] looks at a connection that none reads, without reading.
//
// # Deadlines
//
// [Bounded] stands below the guard, bounds writes itself, and keeps the client library
// from setting deadlines that are set already.
//
// # Connections of others
//
// Connections that callers bring are not guarded: their sockets are not ours to
// wrap. There [Receive] still keeps a length that no memory could hold from ending
// the process.
package respconn
