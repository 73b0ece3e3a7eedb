// Package follow tells what happens to locks from looks at them and from the
// messages on their channels.
//
// A message says that something has happened: that a lock became free, and in a fair
// lock whose turn it is. It does not say who freed it, and nothing is published when
// a lock is taken, when its lease runs out, or when a fair lock that nobody waits for
// is given up. So a lock is looked at after each message and now and then besides,
// and what happened is what changed between two looks:
//
//	before   now    event
//	–        A      held, at the first look
//	–        free   free, likewise
//	free     A      taken
//	A        B      passed; also from A to A, when a message says that it was free
//	A        free   released, when a message was seen
//	                expired, when its lease was over
//	                gone otherwise: deleted, or a fair lock that nobody waited for
//	A        A      entered, left: its count went up or down
//	queue           queued, quit: an owner is queued, or is no more and has not got
//	                the lock
//
// and woken, for a message that calls one waiter of a fair lock. Who is called may not
// come: the lock has passed when it is seen to have. That a lock was free which A had
// and has, a message to all who wait says, and one that calls A: another's call is no
// sign of it, nor is a message that comes later than the look that saw what it tells of.
//
// A lock that changes
// hands more often than it is looked at is told of less often; the messages since the
// last look are counted. Of a long queue the first places are seen: who comes behind
// them is not told of.
//
// [Lock] decides and does no I/O. [Ears] hears the messages of one server, [Posts] those
// of a cluster, where no pattern covers them.
package follow
