// Package reply decodes the replies of the scripts and of the commands that locks send:
// what an acquire, a release, a renewal, an inspection or a heartbeat of a queue returned.
// A reply that no server gives is an error that wraps [transport.ErrBadReply]. It is pure: no
// Redis, no clock, no goroutine, and every function is safe for concurrent use.
package reply
