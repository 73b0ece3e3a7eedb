// Package demo is the command redlatch demo. It shows the locks at work: processes contend
// for one, one of them is killed while it holds it, and the result is checked at the end.
// There are two scenarios, counting under the plain lock and claiming jobs under the fair
// lock.
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
// The read-modify-write is deliberately not atomic: without exclusion, rounds get lost and
// markers collide.
//
// The SET travels in one MULTI with an entry in a journal, a hash with one field per
// worker. A worker that is killed has done both or neither, so the counter must equal the
// sum of the journal, however the run ends. A round that overwrote the result of another is
// in the journal but not in the counter. The rounds that the workers report must equal the
// journal too; only the killed worker may have journaled a round that it could not report
// any more.
//
// # Claiming
//
//	lock ─▶ mark ─▶ look at the first job ─▶ think ─▶ MULTI: take the first job off,
//	count it as done, number the visit, read the lock's queue ─▶ unmark ─▶ unlock
//
// Without exclusion two workers look at one job: it is done twice, and the next one is
// thrown away. At the end each job must be on the list or have been done once.
//
// # Why the order is judged fairly
//
// The queue is the list to which the acquire script pushes each waiter, so its order is
// that of arrival on the server. It is read while the lock is held: no owner can leave it
// by acquiring, and new ones are appended. So the next visit must be that of the first
// owner in it that ever acquires; the owners before it have died. The visits' numbers come
// from the server, too. Which owner comes first to a lock with an empty queue cannot be
// judged; the summary counts the turns that were judged.
//
// # What dead waiters cost
//
// Dead waiters keep their places until their deadlines, or until live ones evict them. The
// deadline of the first place in a queue is one lease and one wait after the queue was last
// empty, later only by one wait for each dead waiter that was removed since. But the
// heartbeats of live waiters, five seconds after they were queued first, extend their own
// deadlines by far more than the waits here, and with these those of the dead waiters
// behind them. Then the grace counts: the first heartbeat that finds a channel without a
// listener, and the one a grace later, which evicts the dead waiters. So the grace is as
// short here as it may be, and some ten seconds after the kill no dead waiter blocks the
// queue any more.
//
// The waits are short, too, and the workers pause most of the time, so that the queue is
// empty now and then: otherwise live waiters could miss their deadlines before the first
// heartbeat, lose their places and be overtaken. In real life the wait is minutes long.
//
// # Why "two inside" is exact
//
// The marker holds the owner and a number, which no other acquisition ever has. A
// worker that finds a marker on entering, or not its own on leaving, reports the owner in
// it. That is a violation, unless the marker is that of the very acquisition whose worker
// was killed, or of one that reported the loss of its lock. This is judged after all events
// are in, so their order does not matter.
package demo
