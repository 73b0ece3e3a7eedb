// Package rueidis makes Redlatch clients on connections of a rueidis client, for one server or a
// cluster, or with the options of a rueidis client, for the master that Sentinels name.
//
//	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs})
//	...
//	client, err := latchrueidis.New(ctx, rdb)
//
// The rueidis client dials, authenticates and encrypts. Redlatch takes dedicated connections from it: one
// for commands to each master, and one for each of SUBSCRIBE and, in a cluster, SSUBSCRIBE; with
// redlatch.WithReplicaSync, one more. They count towards BlockingPoolSize, which must leave room for four
// connections to each node. Other commands of the client use other connections and do not delay
// renewals.
//
// The Redlatch client never closes the rueidis client. Closing it returns all connections, for which
// rueidis may need a second if a server is silent; Close does not wait for that. A connection in use has
// a goroutine for each batch of commands in flight, or one if it listens.
//
// # Retries
//
// rueidis retries read-only commands when a connection breaks, commands after MOVED and ASK, and, with
// ConnLifetime, commands in flight on an expired connection, which may have run. On dedicated connections
// it retries only commands marked as repeatable, after LOADING. Redlatch marks only subscriptions, which
// are harmless twice. So no call runs twice, whatever DisableRetry and ConnLifetime are:
//
//   - A call on a connection that breaks ends with transport.ErrUncertain.
//   - After MOVED and ASK, the call goes to the named node, at most five times.
//   - After TRYAGAIN, CLUSTERDOWN, LOADING and READONLY, Redlatch's locks retry within the command
//     timeout.
//
// # Deadlines
//
// ConnWriteTimeout and Dialer.KeepAlive do not apply to connections for commands: see
// redlatch.WithCommandTimeout. A wait for a connection ends after redlatch.WithDialTimeout, while rueidis
// keeps dialing in the background; the late connection is closed.
//
// # Sentinels
//
// A replaced master keeps working for seconds, and would grant locks that no other client sees. A rueidis
// client leaves it when the one Sentinel that it listens to reports the failover, which took 5 seconds in
// a measurement, and does not expose the Sentinels. So [NewSentinel] takes the options of such a client,
// queries all Sentinels, and connects as [Dialer] does. It also listens to the Sentinels on the servers
// (__sentinel__:hello, which needs the right &__sentinel__:hello) and immediately closes connections to a
// former master.
//
// # Cluster
//
// Redlatch finds the slots itself (CLUSTER SLOTS) and takes connections from the client's nodes. The
// client learns of a node that joined later when an EVALSHA of a missing script is sent for a key of the
// node, or when an EVAL answers TRYAGAIN and makes it refresh.
package rueidis
