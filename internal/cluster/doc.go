// Package cluster is a transport to a Redis or Valkey Cluster, over connections that
// others make: it needs the nodes that there may be, and a function that connects to one.
// It finds out which node serves which slot, sends each call there, follows slots that
// move, and listens to each channel where its slot is served.
//
// # The life of a call
//
//	Start ─▶ who serves the slot? ──known──▶ the node's mux ─▶ reply ─▶ done
//	             │ not known                   ▲          │
//	             ▼                             │          ├─ MOVED, ASK: to the node
//	          waits for a refresh ─────────────┤          │  that is named, at most
//	             │                             └──────────┘  [maxHops] times
//	             └─ no node answers: ends not sent
//
// A server that says MOVED or ASK has not run the call, so it may be sent again. A
// call whose caller has left in between is not: see mux.Mux.Redirect. A call whose
// connection breaks is as uncertain here as anywhere, and is never sent again. What a
// node says that cannot serve now (TRYAGAIN while a slot moves, CLUSTERDOWN, LOADING,
// READONLY) goes to the caller, which knows how long it is worth trying.
//
// A call that replicas are waited for goes the same way, to the node's Batcher (package
// replication) in place of its mux. When another node serves the slot by the time that
// replicas have answered, none of them counts: they are a former master's.
//
// # Refreshes of the topology
//
// A refresh asks the nodes (CLUSTER SLOTS), one after the other in short order, until
// one answers. There is one when a call, a subscription or a connection shows that
// what is known is not so any more, or a master owes replies for a sixth of the reply
// limit, and at most one in a tenth of a second; there is none on a timer. The
// connections to a node that owes replies, and has been replaced, are given up. While a
// node that should be there cannot be reached, the calls to it and its subscribers'
// attempts to connect bring about one after the other, until another node serves its
// slots.
//
// # The life of a subscription
//
// A channel is listened to with SUBSCRIBE and with SSUBSCRIBE, both on the master of
// its slot, since peers may publish either way. The two are its channel subscriptions.
//
//	homeless ─refresh─▶ attached ────both are acknowledged───▶ established
//	    ▲                   │  ▲                                 │
//	    │   cannot connect  │  └── the slot has moved ───────────┤ a gap follows
//	    └───────────────────┘                                    │
//	                                   failed: the server refuses the channel, or Close
//
// A channel subscription of the kind that is not published with may be refused (a
// server before version 7 knows no SSUBSCRIBE, a user may lack the right): then the
// other is enough. Before
// it is established a subscription fails when its node cannot be reached; after that
// it waits for a node that can. While no node serves its slot it stays with the last one that
// did, and package pubsub asks that one again each second.
//
// # Who owns what
//
//   - The refresher, a goroutine, makes the refreshes. Each node that it asks has one, which
//     ends with the answer.
//   - The resubscriber, a goroutine, moves subscriptions: it attaches and detaches
//     channel subscriptions, which must not happen in a callback of a subscriber.
//   - Each master has a mux, at most two subscribers and, once subscribers were
//     counted, two counters, and one Batcher once replicas were waited for. They end
//     with the first refresh a minute after the node has ceased to be a master, if
//     nothing is under way there, or with the cluster.
//
// Cluster.mu guards the table of slots, the nodes and the set of subscriptions; each
// subscription has a mutex of its own, below it. Neither is held across I/O, nor while
// a done runs. Close waits for all goroutines.
package cluster
