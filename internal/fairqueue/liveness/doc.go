// Package liveness tells dead waiters from live ones in the queue of a fair lock.
//
// It decides and does nothing else: no I/O, no clock, no goroutine. A [Detector] is
// given what a heartbeat found in the queue and how many listen to its members'
// channels. It says which of them are dead beyond doubt and may be evicted, whether
// the first must get the message that the lock is free once more, which members are alive
// and so keep their places, and when to look again:
//
//	heartbeat → Look → count the listeners of Ask → Counted → Evict, Nudge → Next
//
// A waiter of a fair lock, in Go or Java, listens to a channel of its own from
// shortly after it was queued until it leaves. A dead one has no connection, so its
// channel has no subscriber. The reverse does not hold: one that reconnects has none for a
// while, and one of Redisson's may be queued for many seconds before it listens. Therefore
// each member has a clock of absence:
//
//	present ──count 0──▶ absent since then ──grace over, count 0 still──▶ dead
//	   ▲                      │
//	   └── any other count, ──┘
//	       queued anew, a gap of our own, or counts too far apart
//
// The grace is the configured one for clients of this library, which are recognized by the
// version of their UUID, and three times that for others. Whether one has been heard before
// makes no difference: a waiter of this process may be too new to have heard it.
//
// A count proves nothing when it cannot be done on all nodes, or when it misses a
// waiter of this process that is known to listen, as behind a proxy that answers by
// itself. Then no member counts as present or absent, and none is evicted.
//
// Only the front of the queue is looked at, where the dead are in the way: the
// first [Front] that are not absent already.
package liveness
