// Package fleet runs fleets of clients in bubbles of testing/synctest, on fake time: several
// clients with several callers each, the server of package embedded, and networks between
// them that go wrong. From the root of the checkout:
//
//	make fleet DURATION=1m            random seeds; it prints the first
//	make fleet FLEETS=1 SEED=7      that fleet again
//
// # A fleet
//
//	seed ──rapid──▶ plan ──▶ bubble: callers and faults ──▶ rest ──▶ end
//	                 ▲                                        │       │
//	                 └── a smaller one ◀── a finding ◀── history and leftovers
//
// A plan is data: the locks, the clients, what each caller does step by step, the faults and
// their moments. At rest all callers have returned and calls in doubt had time: an owner on
// the server is one that a caller has left there on purpose. At the end all clients are
// closed, leases have run out, and dead waiters have been passed: then no key, channel or
// connection is left, and a goroutine that is left makes the bubble panic.
//
// Package history of the nemesis run (see test/stress) judges what the callers saw. What needs
// no allowance for a busy machine is judged here: a lock with waiters lies free for half a
// second at most, fair locks are had in the order of the calls, and a renewed hold is lost
// only near a fault. Faults excuse as little as possible, and a quarter of the fleets has none.
//
// # When a hold is valid
//
// From its grant until it is given up, or until its context ends, which in a bubble is the
// moment when the holder could know. Neither the holder nor the checker is ever late there.
//
// # What the faults stand for
//
//   - Delay ("slow up", "slow down", "freeze"): bytes stand still and arrive afterwards, as after
//     retransmissions.
//   - Loss ("lose up", "lose down", "partition"): a stream cannot lose bytes and go on, so a
//     connection becomes a black hole, in one direction or both, until an end gives it up.
//   - Repetition ("repeat", "lose reply"): a stream does not repeat bytes, and the client sends
//     no acquisition twice. What a server does see is a request that was under way when its
//     connection broke, and runs behind what the client sent anew.
//   - Pause ("pause"): goroutines cannot be stopped in a bubble. The connections of a client
//     stand still in both directions, which is what others see of a paused process. That it
//     sees its own loss late is for package clock's tests and the nemesis run.
//   - Clocks ("drift", "clock step", and clients whose clock is ahead): the server's leases end
//     sooner, by less than the loss margin or all at once; fair locks of a client are given a
//     time that is wrong. The clock of a client's own leases is the bubble's: there is no seam.
//   - Death ("kill"): its connections break, nothing connects any more, and its history ends.
//     Its goroutines go on, in order to end, and are not heard.
//
// The server starts again with its data and without its scripts, or empty, and forgets single
// locks.
//
// # Seeds
//
// A seed says what the plan is, and each packet takes a time of its own, so that little happens
// at one moment. It does not say which of two goroutines runs first, nor the product's own
// jitter: one seed in four gives the same history twice, to the nanosecond. A finding may need
// several runs to come again, so a plan that has failed is run five times before it counts as
// right. A plan that found a bug is kept in testdata, and is a test from then on.
//
// # What it has found
//
// A place in a fair lock's queue that was asked for with a short rlock.WithWait, behind
// places with long waits, can be overdue as soon as one of those is served, and is then taken
// out: the rule for deadlines is Redisson's. The waiter queues anew with its next heartbeat, five
// seconds later at most. Plans have no such waits.
package fleet
