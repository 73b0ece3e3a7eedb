// Package rueidis makes Redlatch clients that use a rueidis client's connections, so that
// locks work wherever that leads: one server, a cluster, and, by its options, the master
// that Sentinels name.
//
//	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs})
//	...
//	client, err := latchrueidis.New(ctx, rdb)
//
// The rueidis client dials, authenticates and encrypts. All else is the same code as
// without it: Redlatch takes connections of its own from the client (rueidis calls them
// dedicated) and works on them as on any other. For a master that Sentinels name there is
// no rueidis client: [NewSentinel] dials as its options say.
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
// connections for commands: see redlatch.WithCommandTimeout. Nor does its dial timeout hold
// up a caller: a wait for a connection ends after redlatch.WithDialTimeout, while rueidis
// goes on dialling in the background for as long as it was told to, and the connection is
// closed as soon as it is there.
//
// # Sentinel
//
// A master that was replaced goes on working for seconds, and takes locks that no other
// client sees. A rueidis client leaves it when the one Sentinel that it listens to tells,
// 5 seconds late in a failover that was measured, and it does not say where the Sentinels
// are. So [NewSentinel] takes the options of such a client, asks all Sentinels itself, and
// makes the connections as [Dialer] does. What the Sentinels say on the servers
// (__sentinel__:hello, which needs the right &__sentinel__:hello) is heard, and connections
// to a former master are closed at once.
//
// # Cluster
//
// Redlatch itself finds out which node serves which slot (CLUSTER SLOTS) and takes its
// connections from the client's nodes. A node that joined the cluster later is not known to
// the client until it is sent there; it is sent there, with an EVALSHA of no script on a
// key that the node serves, or made to look anew, with an EVAL of a script that answers
// TRYAGAIN.
//
// # Who owns what
//
// The client belongs to its maker and is never closed here. Closing the Redlatch client
// gives all connections back, which rueidis may need a second for where a server is silent;
// that is not waited for. A connection that is in use has a goroutine for each batch of
// commands that is under way, or one when it listens: they end with the connection.
package rueidis
