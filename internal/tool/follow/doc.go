// Package follow finds out what happens to locks from looks at them and from the messages
// on their channels.
//
// A message means that something has happened: that a lock became free, and in a fair lock
// which waiter is next. It does not name the owner that freed it, and nothing is published
// when a lock is taken, when its lease runs out, or when a fair lock with an empty queue is
// released. So a lock is looked at after each message and now and then, and what happened
// is what changed between two looks:
//
//	before   now    event
//	–        A      held, at the first look
//	–        free   free, likewise
//	free     A      taken
//	A        B      passed; also from A to A, when a message shows that it was free
//	A        free   released, when a message was seen
//	                expired, when its lease was over
//	                gone otherwise: deleted, or a fair lock with an empty queue
//	A        A      entered, left: its count went up or down
//	A, B     A, C   B left, C entered: a read/write lock with several holders
//	queue           queued, quit: an owner is queued, or is no more and has not got
//	                the lock
//
// and woken, for a message that wakes one waiter of a fair lock. That waiter may not come:
// the lock has passed when another owner is seen with it. That a lock which A had and has
// was free in between is shown by a message to all waiters, and by one that wakes A; not by
// one that wakes another owner, nor by one about an event that the last look has already
// seen.
//
// A lock that changes owners more often than it is looked at has fewer events than changes;
// the messages since the last look are counted. An owner that writes and reads holds a
// read/write lock twice, as a writer and as a reader. Of a long queue the first places are seen:
// arrivals behind them are no events.
//
// [Lock] decides and does no I/O. [PatternSubscriber] receives the messages of one
// server, [ChannelSubscriber] those of a cluster, where no pattern covers them.
package follow
