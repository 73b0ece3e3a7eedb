// Package subcount counts the subscribers of channels, on a master and on all of its
// replicas: what is published on a master reaches the subscribers there, and those on a
// replica. A waiter without a subscriber may be taken for dead, so a count is of all nodes
// or it is an error. The package knows of no lock, and of connections only that calls can
// be started on them.
//
// # One count
//
//	Listeners ─▶ list: still good? ──yes──▶ PUBSUB NUMSUB to the master and to
//	                 │ no                     every replica at once ─▶ added up
//	                 ▼                                   │
//	        HELLO and ROLE to the master                 └─ one does not answer:
//	                 │                                      an error that names it
//	                 └─ refused, or not a master alone:
//	                    an error, remembered as long as a list of replicas is good
//
// A list is good for ten seconds, or until the connection to the master is
// replaced: then the master may be another. One that the connection was replaced
// during is not used. HELLO tells whether the server is part of a cluster, whose
// other nodes ROLE says nothing of.
//
// Replicas are where ROLE says they are. Each is asked for its identity with every
// count, since an address that leads elsewhere, to the master say, would hide the
// listeners of the replica.
//
// # The life of a replica
//
//	in ROLE ──ROLE no longer shows it──▶ former ──a failure, or ten minutes──▶ forgotten
//	   ▲                                   │
//	   └───────────ROLE shows it───────────┘
//
// ROLE does not show a replica that is being synchronised anew, while its
// subscribers stay connected. So a former replica is counted, too, as long as it
// answers; when it cannot be reached, it has no subscribers.
//
// # Who owns what
//
// Each replica has a goroutine, which closes the connection when it was
// not used for a minute, or with the Counter. Close waits for these goroutines. There are
// no other goroutines: the answers come on those of the connections. No mutex is
// held across I/O.
package subcount
