// Package demo shows the lock at work: four processes contend for it, one of
// them is killed while it holds it, and the books are checked at the end.
//
//	parent ──stdin: config, "stall", "stop"──────▶ worker 1 … 4
//	       ◀──stdout: one event a line, as JSON──
//
// A worker whose input ends unasked has lost its parent, and ends at once.
//
// # What a worker does
//
//	lock ─▶ mark "inside" ─▶ GET counter ─▶ think ─▶ SET counter+1 ─▶ unmark ─▶ unlock
//
// The read-modify-write is deliberately not atomic: without exclusion, rounds
// get lost and markers collide.
//
// # Why the books are exact
//
// The SET travels in one MULTI with an entry in a journal, a hash with one field
// per worker. A worker that is killed has done both or neither, so the counter
// must equal the sum of the journal, whatever died when. A round that overwrote
// another one's result is in the journal but not in the counter. The rounds that
// the workers report must equal the journal too; only the killed one may have
// journaled a round that it could not report any more.
//
// # Why "two inside" is exact
//
// The marker holds the owner of the acquisition, which no other acquisition ever
// has. Whoever finds a marker on entering, or not its own on leaving, reports
// whose it found. That is a violation, unless the marker is that of the very
// acquisition whose worker was killed, or of one that said itself that it had
// lost the lock. This is judged after all events are in, so their order does not
// matter.
package demo
