// Package redistest gives tests real servers, in-memory ones, and a network
// that can be broken on purpose.
//
// # The life of a server
//
//	            ┌────────── Restart ─────────────┐
//	            ▼                                │
//	Start ─▶ running ──Kill / Shutdown──▶ stopped
//	            │  ▲
//	       Pause│  │Resume
//	            ▼  │
//	          frozen
//
// [Start] makes a server for one test: a redis-server or valkey-server process
// on a free loopback port, empty, without persistence unless [WithAppendOnly] asks
// for it. It ends with the test, in whatever state it is. On Linux it also ends with the test process, however
// that dies. [Shared] is one server for the whole test binary; [Key] makes the
// names that keep its tests apart, and [Main] ends it.
//
// One goroutine per server process starts it, waits for it, and ends with it.
// It holds its OS thread all the while, because the kernel ends the process
// with the thread that started it.
//
// # Which server
//
// The environment variable REDLATCH_SERVER names the program, by name or path;
// [WithBinary] overrides it. Without either it is redis-server, else
// valkey-server, from PATH. A missing program fails the test, and skips it only
// under -short.
//
// [StartReplica] starts a replica of a server, with the same program unless told
// otherwise.
//
// [EachServer] runs a test on that server, in memory, and on Valkey: on the
// program that REDLATCH_VALKEY names, else on the one that `make setup` has
// fetched. A missing Valkey fails the test if CI=true, and skips it otherwise.
//
// # Several servers
//
// [StartCluster] makes a Redis Cluster of as many masters and replicas as a test
// needs, [StartSentinels] a master, two replicas and three Sentinels. Both return
// when all know of all others: before that, they would not do in a failure what they
// do otherwise. Their nodes are Servers of the test's own.
//
//	StartCluster:   CLUSTER MEET each with each ─▶ ADDSLOTSRANGE ─▶ all known ─▶
//	                REPLICATE ─▶ cluster_state:ok, replicas in step
//	StartSentinels: master ─▶ replicas in step ─▶ Sentinels ─▶ slaves=2,sentinels=3
//
// Their methods do to them what operators and failures do: MoveSlot, Failover, and
// the Kill and Pause of a node.
//
// # The network
//
// [Proxy] stands between a client and a server and holds back, delays, cuts or
// refuses what passes. What it holds back it can deliver later, as networks do.
package redistest
