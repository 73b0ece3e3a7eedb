// Package goredis creates Redlatch clients from a go-redis client for one server, Sentinels or a
// Redis Cluster:
//
//	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: seeds})
//	client, err := goredis.New(ctx, rdb)
//	if err != nil {
//		return err
//	}
//	lock := rlock.New(client, "orders:42")
//
// go-redis dials each connection with the client's Dialer, TLSConfig, credentials, DB, ClientName,
// OnConnect, DialTimeout and, in a cluster, NewClient. Redlatch then takes over the connection, so
// options for pools, retries, read timeouts, limiters, caches and hooks do not apply, and the
// connection does not count toward the client's pool.
package goredis
