// Package peer runs a live Redisson, a Java process, and tells it what to do.
//
// The program is internal/test/peer/java; its package comment has the protocol. It must have
// been built, and the release's class path resolved, by scripts/compat.sh:
// [Find] looks, and says what is missing.
//
//	Find ─▶ Program ─ Start ─▶ Peer ── Go ──▶ Call ── Wait ──▶ Reply
//	                            │ Close, or Halt, or the process ends
//	                            ▼
//	                           gone: open calls answer with ErrGone
//
// A Peer has one goroutine, which reads replies and ends with the process. Calls
// may be begun by any goroutine and answer in any order, because a call that
// blocks in Java must not hold up the others.
package peer
