// Package embedded runs a Redis-like server inside the process, for development, demos and tests only:
//
//	srv, err := embedded.Start()
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//	client, err := redlatch.Open(ctx, srv.URL())
//
// It is miniredis with a running clock, faults on demand, such as [Server.LoseReplies], and protection
// against clients that send malformed requests or do not read. Redlatch's lock scripts give the same
// replies, keys and messages on it as on real servers. It has no persistence, replication, ACL or TLS,
// and is slow: some 4,000 scripts a second, fewer with more than 1,000 keys. A test with a real server
// is still needed.
//
// With [WithInProcess] it can run in a bubble of testing/synctest, where keys expire by the fake clock.
// To make a holder lose its lock, release it with ForceUnlock, or call [Server.FailWith] and wait for one
// lease. docs/testing-your-code.md shows such tests, and lists the limits.
package embedded
