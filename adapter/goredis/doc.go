// Package goredis lets Redlatch take locks where a go-redis client leads: one server, a
// master that Sentinels watch, a Redis Cluster.
//
//	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: seeds})
//	client, err := goredis.New(ctx, rdb)
//	if err != nil { … }
//	lock := rlock.New(client, "orders:42")
//
// It is a module of its own: a program that does not import it has no go-redis in
// its go.sum.
//
// # What go-redis does, and what Redlatch does
//
// go-redis makes the connections, with all that the client's options say of that: Dialer,
// TLSConfig, user and password or a provider of them, DB, ClientName, OnConnect,
// DialTimeout, and NewClient in a cluster. It asks the Sentinels for the master. When
// a connection is ready, Redlatch takes it, and go-redis never uses it. Redlatch
// itself asks the nodes which of them serves which slot, beginning with those in
// Addrs.
//
//	New ──first call──▶ go-redis: dial, TLS, HELLO, AUTH, SELECT, OnConnect ──▶ Redlatch's own
//	                        ▲                                                      │
//	                        └─── lost, or the master is another ───────────────────┘
//
// There is one connection for commands and one for subscriptions to the master; in a
// cluster one for commands and one for each of SUBSCRIBE and SSUBSCRIBE to each node that
// is used, however many locks there are; with redlatch.WithReplicaSync there is one more
// to each master that is used. They come on top of the client's pool. What the
// client's options say of pools, retries, read timeouts, limiters and caches has no
// effect on them, nor have hooks. A provider of streaming credentials is asked for each
// new connection; one that there is keeps the credentials that it was made with.
//
// # Why not the client's own commands
//
// go-redis repeats a command after an error of the network (MaxRetries, three times by
// default): a lock could be acquired twice, and be held once more than its caller knows.
// It heeds the deadline of a context only if ContextTimeoutEnabled is set. And a message
// that is not read for a minute is dropped without an error. On connections of its own
// none of that can happen:
//
//   - A call that was sent and not answered is transport.ErrUncertain, and never sent
//     again. Redlatch finds out what came of it, and kills the connection on the server
//     where that is permitted, so that the call cannot run late.
//   - A call that could not be sent is transport.ErrNotSent.
//   - MOVED and ASK mean that the server has refused the call: it goes to the node that
//     was named. TRYAGAIN, CLUSTERDOWN, LOADING and READONLY mean that it cannot serve it
//     now: Redlatch calls again after a pause, for as long as one command may take.
//   - Deadlines are Redlatch's own, see redlatch.WithCommandTimeout.
//   - A listener that does not read delays no other, and is woken all the same.
//
// # Metrics of go-redis
//
// The native metrics of go-redis (redisotel-native) label each message with its channel. Those of
// locks are not among them, because Redlatch reads its messages itself, and so they are as few
// with locks as without. A program that subscribes or publishes to lock channels with the client
// itself has one series for each lock's name: set WithHidePubSubChannelNames(true) in their
// configuration. What to watch of locks is in the modules promredlatch and otelredlatch.
//
// # Sentinels
//
// A master that was replaced goes on working for seconds: a client that keeps its
// connection takes locks that no other client sees. Each Sentinel names the master on the
// channel __sentinel__:hello of all servers, every two seconds and at once after a
// switch. Redlatch listens there, and when another master is named, or a server answers
// READONLY, or no Sentinel was heard for 2.5 s, it asks, through go-redis, for the
// master's address, and drops its connections to any other server at once. Then all holds
// are renewed, so that holders of locks that the new master does not know learn of the loss
// as soon as it is reached.
//
//	connected ──word of another master, READONLY, silence──▶ ask ──same──▶ connected
//	    ▲                                                     │
//	    └──────────── dial whom the Sentinels name ◀──another─┘
//
// The right to that channel is &__sentinel__:hello. Without it the Sentinels are asked
// every second.
package goredis
