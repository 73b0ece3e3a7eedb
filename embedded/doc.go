// Package embedded runs a Redis-like server inside the process, for development, demos and tests
// only:
//
//	srv, err := embedded.Start()
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//	client, err := redlatch.Open(ctx, srv.URL())
//
// It is miniredis with a running clock, faults on demand, such as [Server.LoseReplies], and
// protection against malformed requests and slow readers. Redlatch's scripts produce the same
// replies, keys and messages as on real servers. It does not support persistence, replication, ACLs
// or TLS, and is slow: a few thousand scripts per second, fewer with more than 1,000 keys.
//
// With [WithInProcess] it can run in a testing/synctest bubble, where keys expire according to the
// fake clock. To make a holder lose its lock, call ForceUnlock, or call [Server.FailWith] and wait
// for one lease. docs/testing-your-code.md has examples and limits.
package embedded
