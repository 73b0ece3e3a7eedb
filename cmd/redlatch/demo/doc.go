// Package demo is the command redlatch demo. It shows the locks at work: processes
// contend for one, one of them is killed while it holds it, and the books are checked
// at the end. There are two pieces, counting under the plain lock and claiming jobs
// under the fair lock.
//
//	parent ──stdin: config, "stall", "stop"──────▶ process 1 …
//	       ◀──stdout: one event a line, as JSON──
//
// A process whose input ends unasked has lost its parent, and ends at once.
//
// # Counting
//
//	lock ─▶ mark "inside" ─▶ GET counter ─▶ think ─▶ SET counter+1 ─▶ unmark ─▶ unlock
//
// The read-modify-write is deliberately not atomic: without exclusion, rounds
// get lost and markers collide.
//
// The SET travels in one MULTI with an entry in a journal, a hash with one field
// per worker. A worker that is killed has done both or neither, so the counter
// must equal the sum of the journal, whatever died when. A round that overwrote
// another one's result is in the journal but not in the counter. The rounds that
// the workers report must equal the journal too; only the killed one may have
// journaled a round that it could not report any more.
//
// # Claiming
//
//	lock ─▶ mark ─▶ look at the first job ─▶ think ─▶ MULTI: take the first job off,
//	count it as done, number the visit, read the lock's queue ─▶ unmark ─▶ unlock
//
// Without exclusion two workers look at one job: it is done twice, and the next one
// is thrown away. At the end each job must be on the list or have been done once.
//
// # Why the order is judged fairly
//
// The queue is the list to which the acquire script pushes whoever waits, so its
// order is that of arrival on the server. It is read while the lock is held: nobody
// can leave it by getting in, and whoever comes stands behind those in it. So the
// next visit must be that of the first in it, of those who get in at all; the
// others have died. The visits' numbers come from the server, too. What cannot be
// judged is who comes first to a lock with an empty queue; the summary says how
// many turns were judged.
//
// # What the dead cost
//
// The dead keep their places until their deadlines, or until the living take them
// out. The deadline of the first in a queue is one lease and one wait after the queue
// was last empty, later only by one wait for each of the dead that was removed since.
// But the heartbeats of the living, five seconds after they were queued first, put
// their own deadlines off by far more than the waits here, and with these those of
// the dead behind them. Then it is the grace that counts: the first heartbeat that
// finds nobody listening, and the one a grace later, which takes the dead out. So it
// is as short here as it may be, and some ten seconds after the kill nobody waits for
// the dead any more.
//
// The waits are short, too, and the workers are busy elsewhere most of the time, that
// the queue is empty now and then: otherwise the living could miss their deadlines
// before the first heartbeat, lose their places and be overtaken. In real life the
// wait is minutes long.
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
