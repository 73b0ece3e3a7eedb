// Package embedded runs a Redis-like server inside the process, for development, demos and tests only.
// It is miniredis with a running clock. The tests of the lock scripts and the recorded calls of
// Redisson run on it and on real servers and require the same replies, keys and messages.
//
//	srv, err := embedded.Start()
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//	client, err := redlatch.Open(ctx, srv.URL())
//
// Clients connect over TCP to [Server.URL], or in memory with [Server.Dial], the only way with
// [WithInProcess]. Each connection has an output buffer, so a client that does not read does not block
// others; the server closes its connection at 32 MiB, as Redis does. Malformed requests, requests over
// 64 MiB and commands on which miniredis panics close only their connection.
//
// # Time
//
// Keys expire by the process's clock. In a bubble of testing/synctest that is the fake clock: a server
// started there with [WithInProcess] expires keys after hours that take microseconds. A real socket
// stops the fake clock for good. [Server.FastForward] and [Server.SetTime] move only the server's
// clock.
//
// # Faults
//
// [Server.FailWith] makes every command fail, [Server.LoseReplies] runs commands without replying, and
// [Server.DropConnections] and [Server.DropSubscribers] close connections. docs/testing-your-code.md and
// examples/testing show tests of code that uses locks.
//
// # Limits
//
//   - Slow: a script takes about 0.2 ms, one after the other, so some 4,000 a second, where Redis does
//     100,000.
//   - For few keys: each command in a script scans all keys with a TTL. With 10,000 of them a lock
//     script takes about 9 ms; stay below 1,000.
//   - No persistence, replication, ACL or TLS. By default it listens on the loopback interface.
//   - Incomplete: CLIENT has only SETNAME and GETNAME, and ACL, CONFIG, DEBUG, MONITOR and the real
//     CLUSTER and INFO are missing. ROLE is always a master without replicas. SPUBLISH, SSUBSCRIBE and
//     SUNSUBSCRIBE are aliases of PUBLISH, SUBSCRIBE and UNSUBSCRIBE, whose names their
//     acknowledgements and messages have.
//   - Errors from inside scripts have other texts than in Redis, and HGETALL and KEYS reply in sorted
//     order.
//
// It does not replace a test with a real server.
package embedded
