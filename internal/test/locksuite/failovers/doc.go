// Package failovers replaces the master under locks, in each way in which that happens,
// and measures what became of their holders and of those who wait. Both adapters are
// put through it by the same code, and its figures are those of docs/topologies.md.
//
// # The life of a trial
//
//	a cluster, or a master with Sentinels
//	  ─▶ locks that the replicas have: each has a holder, and one who waits
//	  ─▶ the replicas are cut off, where a lock is to be lost
//	  ─▶ locks that no replica has: each has a holder, and one who waits
//	  ─▶ crowds take two more locks, of both kinds, without a pause
//	  ─▶ the failure
//	  ─▶ who waits for a lock that was lost gets it, its holder is told; a crowd goes on
//	  ─▶ the other holders unlock, and who waits for them gets in
//	  ─▶ a master that stood still goes on, and finds out that it is none any more
//
// # What cannot be prevented
//
// Replication is late, so a lock that no replica has is lost with its master, and the
// one who waits for it gets in while its holder cannot know yet: two at once, until the
// holder hears it from the new master. That is counted, not forbidden. What answers it is
// redlatch.WithReplicaSync, which does not grant such a lock, and a token that the resource
// checks.
package failovers
