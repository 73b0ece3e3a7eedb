// Package watchdog keeps leases alive and says when one is lost.
//
// One goroutine serves every hold of a client, however many there are. Each
// [Lease] goes round like this:
//
//	            ┌────────── renewed, or failed with time left ─────────┐
//	            ▼                                                      │
//	Add ──▶ watched ──a third of the lease, or a doubt──▶ renewing ────┤
//	            │                                            │         │
//	            │ deadline                          server says "gone" │
//	            ▼                                            ▼         │
//	          lost ◀─────────────── deadline ───────────────lost ◀─────┘
//
// A fixed lease is only watched: nothing renews it, and it ends at its deadline. The
// exception are locks whose time to live the renewals of others may shorten, see
// [Lease.Trust]: there the server is asked to mend that, and the deadline counts from
// its last answer.
//
// The deadline is the send time of the last acknowledged call, plus the lease,
// less the loss margin. Since the server starts to count when it runs the call,
// which is later than when it was sent, the loss is declared before the server
// can grant the lock to another owner. The earlier of the wall clock and the
// monotonic clock decides.
//
// Renewals go out in batches, one script for up to [BatchSize] locks, and are
// retried with a growing pause until the deadline: one failed renewal, or ten,
// costs nothing as long as one succeeds in time.
//
// A doubt is that a connection was lost, or another server has become the master: the
// locks may have been forgotten, as in a failover. Then all leases are renewed at once,
// so that holders learn of it now and not a third of a lease later. That happens once a
// second at most, and each lease goes back to its own time afterwards.
//
// [Loop.Remove] takes a lease out before its lock is released. A renewal that is
// on its way at that moment is harmless on the server, which tests ownership
// first, and its answer is ignored here.
package watchdog
