// Package failovers replaces the master under locks, in each way in which that happens, and
// measures the effect on their holders and waiters. Both adapters run the same code, and
// its figures are those of docs/topologies.md.
//
// # The life of a trial
//
//	a cluster, or a master with Sentinels
//	  ─▶ locks that the replicas have: each has a holder and a waiter
//	  ─▶ the replicas are cut off, where a lock is to be lost
//	  ─▶ locks that no replica has: each has a holder and a waiter
//	  ─▶ workers take two more locks, of both kinds, without a pause
//	  ─▶ the failure
//	  ─▶ the waiter of a lock that was lost gets it, its holder gets ErrLost; the workers go on
//	  ─▶ the other holders unlock, and their waiters get the locks
//	  ─▶ a master that stood still goes on, and finds out that it is none any more
//
// # What cannot be prevented
//
// Replication is late, so a lock that no replica has is lost with its master, and its
// waiter gets it while its holder cannot know yet: two at once, until the holder's next
// request to the new master. That is counted, not forbidden. The remedies are
// redlatch.WithReplicaSync, which does not grant such a lock, and a token that the resource
// checks.
package failovers
