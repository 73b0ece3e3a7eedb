// Package embedded is a Redis-like server inside the process: for development,
// demos and tests, and for nothing else.
//
// It is miniredis with its clock running. The recorded calls of Redisson, and the tests of
// the lock scripts, run on it and on real servers, and want the same replies, keys and
// messages of both.
//
//	srv, err := embedded.Start()
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//	client, err := redlatch.Open(ctx, srv.URL())
//
// # Two ways in
//
//	redlatch.Open(ctx, srv.URL()) ──TCP──▶ listener ─┐
//	                                                 ├─▶ output buffer ─▶ miniredis
//	redlatch.New(srv.Dial) ──in-memory pipe──────────┘
//
// Every server has the second way; [WithInProcess] leaves out the first and
// opens no port. Every connection has an output buffer of its own, so that a
// client that does not read cannot hold up the others. As Redis does, the
// server cuts off a client that lets 32 MiB pile up. Bytes that are not a request, requests of
// more than 64 MiB, and commands on which miniredis panics end the connection only.
//
// # Time
//
// Keys expire when their time has come by the process's clock. Inside a bubble
// of testing/synctest that is the bubble's fake clock: with [WithInProcess], a
// server started in the bubble expires keys after hours that last microseconds.
// A real socket has no place in a bubble: it stops the fake clock for good.
// [Server.FastForward] and [Server.SetTime] move the server's clock alone.
//
// # Trouble on purpose
//
// [Server.FailWith] makes every command fail, [Server.LoseReplies] runs commands
// and loses what they answer, [Server.DropConnections] and
// [Server.DropSubscribers] cut connections. They are for seeing what your own
// program does then.
//
// docs/testing-your-code.md and examples/testing show tests of code that uses locks: the lock
// is free, held by another process, lost, and the server is away.
//
// # What it is not
//
//   - Not fast: a script takes about 0.2 ms, one after the other, so some 4,000
//     a second in all, where Redis does 100,000.
//   - Not for many keys: each command inside a script looks at every key that
//     has a time to live. With 10,000 of them one lock script takes about 9 ms;
//     stay below 1,000.
//   - Not durable and not shared: no persistence, no replication, gone with the
//     process.
//   - Not guarded: no ACL and no TLS. It listens on the loopback interface unless
//     told otherwise.
//   - Not complete: CLIENT knows only SETNAME and GETNAME (no ID, no KILL), and
//     there is no ACL, CONFIG, DEBUG or MONITOR, no real CLUSTER or INFO. ROLE is
//     always that of a master without replicas, which is what it is.
//     SPUBLISH, SSUBSCRIBE and SUNSUBSCRIBE are other names of PUBLISH, SUBSCRIBE
//     and UNSUBSCRIBE: acknowledgements and messages come under the plain names.
//   - Error texts from inside scripts are worded differently than Redis words
//     them, and HGETALL and KEYS answer in sorted order.
//
// It does not stand in for a test against a real server.
package embedded
