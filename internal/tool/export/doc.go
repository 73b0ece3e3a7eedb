// Package export makes figures of the locks on a server, for Prometheus.
//
//	Collector.Look ─▶ inspect.RunOnMasters    every lock, with short commands
//	       │               │ each lock
//	       │               ▼
//	       │          a group by its name ─▶ sums of the group
//	       │          its holds           ─▶ since when each has been seen
//	       │          its queue           ─▶ which waiters have no subscriber
//	       ▼
//	    Figures ─▶ Figures.Write            the text format of Prometheus
//
// The server knows the owners of a lock, the owners that are queued, and what the lease has
// left. It does not know when a hold began: the Collector remembers when it first saw an owner
// hold a lock. A hold's age is therefore at least what is said, and begins anew when the
// program starts.
//
// Names of locks, owners and clients never become labels: the number of series depends on the
// groups alone.
package export
