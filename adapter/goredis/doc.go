// Package goredis makes Redlatch clients with the settings of a go-redis client of one server, a master
// that Sentinels watch, or a Redis Cluster.
//
//	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: seeds})
//	client, err := goredis.New(ctx, rdb)
//	if err != nil { … }
//	lock := rlock.New(client, "orders:42")
//
// go-redis dials each connection with the client's Dialer, TLSConfig, credentials, DB, ClientName,
// OnConnect, DialTimeout and, in a cluster, NewClient. When it is ready, Redlatch takes the connection,
// and go-redis never uses it. Redlatch itself queries the slots of cluster nodes, starting with Addrs.
// Options for pools, retries, read timeouts, limiters, caches and hooks do not apply. A provider of
// streaming credentials is used for each new connection only.
//
// There is one connection for commands and one for subscriptions to the master; in a cluster, one for
// commands and one each for SUBSCRIBE and SSUBSCRIBE to each node in use; with
// redlatch.WithReplicaSync, one more to each master. They do not count towards the client's pool.
//
// # Why not the client's commands
//
// go-redis retries a command after a network error (MaxRetries, by default three times), so a lock could
// be acquired twice. It respects the deadline of a context only with ContextTimeoutEnabled. And it drops
// a message that is not read for a minute. On separate connections:
//
//   - A call without a reply is transport.ErrUncertain and never sent again. Redlatch finds its outcome
//     out and, where permitted, kills the connection on the server, so that it cannot run late.
//   - A call that could not be sent is transport.ErrNotSent.
//   - After MOVED and ASK, the call goes to the named node. After TRYAGAIN, CLUSTERDOWN, LOADING and
//     READONLY, Redlatch retries within the command timeout.
//   - Deadlines are those of redlatch.WithCommandTimeout.
//   - A listener that does not read does not delay others, and is still woken.
//
// # Metrics of go-redis
//
// The native metrics of go-redis (redisotel-native) label messages with their channels. Redlatch reads
// its messages itself, so its channels are not included. A program that uses lock channels with the
// client has one series per lock: set WithHidePubSubChannelNames(true). For metrics of locks, see the
// modules promredlatch and otelredlatch.
//
// # Sentinels
//
// A replaced master keeps working for seconds, and would grant locks that no other client sees. Each
// Sentinel publishes the master on __sentinel__:hello of all servers every two seconds and after a
// failover. When it names another master, a server answers READONLY, or no Sentinel published for 2.5 s,
// Redlatch queries the master through go-redis and immediately closes its connections to any other
// server. Then it renews all holds, so that holders of locks that the new master lacks learn of the
// loss. This needs the right &__sentinel__:hello; otherwise Redlatch queries the Sentinels every second.
package goredis
