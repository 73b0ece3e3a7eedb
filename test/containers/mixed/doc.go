// Package mixed tests Redlatch together with a live Redisson where Redis is a cluster. What
// the two do on one server the tests of the root module compare; here is what a cluster
// adds: two ways to publish, slots that move, and nodes that die.
//
// # Which client wakes which
//
// Parties are clients of either language, each with its mode of sharded pub/sub. Any two
// meet on every kind of lock and on each kind of server:
//
//	one takes the lock ─▶ the other waits ─▶ it is seen to sleep (MONITOR) ─▶ the one
//	frees the lock ──received──▶ the other has it: counted, and how long it took
//	                └─not received─▶ the other sleeps until the lease is over: so it must be
//
// Which of the two it is follows from how the one publishes and how the other listens, both
// of which are looked at and not assumed.
//
// # What goes on
//
// Workers of both languages take locks in turns while a slot moves and a master dies. Each
// records when it had the lock, by the machine's clock, and the test compares:
//
//	work ─▶ the cluster changes ─▶ every worker has had its turns again ─▶ stop ─▶ compare
//
// The Java peer is the one of internal/test/peer/java, which scripts/compat.sh builds. A
// machine without it skips the tests, unless CI=true or REDLATCH_COMPAT=1 requires it.
// REDLATCH_COMPAT_VERSIONS names Redisson's releases, REDLATCH_WAKEUPS how often any two
// meet: see docs/testing.md.
package mixed
