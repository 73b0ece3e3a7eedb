// Package rueidis makes a Redlatch transport of a rueidis client, so that locks work
// wherever that client leads: one server, the master that Sentinel names, a cluster.
//
//	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs})
//	...
//	t, err := latchrueidis.New(ctx, rdb)
//	...
//	client, err := redlatch.NewWithTransport(t)
//
// The rueidis client dials, authenticates, encrypts and discovers. All else is the
// same code as without it: the transport takes connections of its own from the client
// (rueidis calls them dedicated) and works on them as on any other.
//
// # The life of a connection
//
//	client.Dedicate ──▶ PING, CLIENT ID ──▶ in use ──▶ lost, silent for too long,
//	      │                   │                        or leads to the wrong server
//	      └── fails ──────────┴──▶ calls that wait            │
//	                               end not sent               ▼
//	                                                  calls under way end uncertain,
//	                                                  the connection goes back, closed
//
// There is one connection for commands to each master, and one for each way of
// listening (SUBSCRIBE, and in a cluster SSUBSCRIBE), however many locks and waiters
// there are; with redlatch.WithReplicaSync there is one more, on which replicas are
// waited for. They count towards BlockingPoolSize, which has to leave room for four
// connections to each node. What else the client does is done on other connections,
// and holds up no renewal.
//
// # What rueidis repeats, and what not
//
// rueidis repeats commands that it takes for read-only when a connection breaks, those
// that MOVED and ASK send elsewhere, and, with ConnLifetime, those that were under way
// on a connection when its time was over: on one that is closed under a silent server
// they may have run. None of this concerns dedicated connections: there it repeats
// nothing but a command that the server answered with LOADING, and only one that is
// marked as repeatable. Ours are not, except subscriptions, which do no harm twice. So
// no call runs twice, whatever DisableRetry and ConnLifetime say:
//
//   - A call on a connection that breaks ends with transport.ErrUncertain, and is not
//     sent again.
//   - MOVED and ASK are followed by the transport, at most five times: the server that
//     says so has not run the call.
//   - TRYAGAIN, CLUSTERDOWN, LOADING and READONLY go to the caller. Redlatch's locks
//     try again, within the command timeout.
//
// # Deadlines
//
// The rueidis client's ConnWriteTimeout and Dialer.KeepAlive have no influence on the
// connections for commands: the transport gives one up when nothing is answered on it
// for six seconds (see [WithReplyLimit]). Nor does its dial timeout hold up anybody: who waits for a
// connection is told after five seconds (see [WithDialTimeout]), while rueidis goes on
// dialling in the background for as long as it was told to, and the connection is
// closed as soon as it is there.
//
// # Sentinel
//
// A master that was replaced goes on working for seconds: who keeps a connection to it
// takes locks that nobody else sees. The transport hears what all Sentinels say of the
// master on the servers themselves (__sentinel__:hello, which needs the right
// &__sentinel__:hello), and looks, ten times a second and without asking anybody, which
// master the client turns to. When another is named, it drops its connections at once.
//
//	t, err := latchrueidis.New(ctx, rdb, latchrueidis.WithClientOption(option))
//
// With [WithClientOption] it goes straight to the new master. Without, it waits for the
// client to turn there, which may be seconds later: rueidis listens to +switch-master on
// one Sentinel, and the one that leads a failover says so last. A Sentinel that is cut
// off says nothing at all. So set SentinelOption.TopologyRefreshInterval, a second is
// fine, for the client's own sake in any case.
//
// # Cluster
//
// The transport finds out who serves which slot by itself (CLUSTER SLOTS) and takes
// its connections from the client's nodes. A node that joined the cluster later is not
// known to the client until it is sent there; the transport has it sent there, with an
// EVALSHA of no script on a key of the slot in question, or has it look anew, with an
// EVAL of a script that answers TRYAGAIN.
//
// # Who owns what
//
// The client belongs to its maker and is never closed here. Close gives all connections
// back and waits for that, at most about a second where a server is silent.
package rueidis
