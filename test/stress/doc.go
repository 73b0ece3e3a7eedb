// Package stress is the nemesis run: client processes that take locks in every way that
// there is, while servers, networks and processes are broken under them, and a checker of
// their histories. It needs Linux. Run it from the root of the checkout:
//
//	make stress DURATION=10m           a random seed, which it prints
//	make stress DURATION=10m SEED=7    the schedule of that seed again
//
// # A campaign
//
//	servers, proxy, processes
//	    │
//	    ▼
//	round: go ──▶ faults by the schedule ──▶ heal ──▶ drain ──▶ at rest: judge
//	    ▲                                                            │
//	    └────────────────────────────────────────────────────────────┤
//	                                             the time is over    ▼
//	           quit: nothing may be left ◀── leases run out, dead waiters are evicted
//
// The processes (see internal/worker) reach the locks' server through a proxy that breaks;
// they ask it past the proxy what it has, and leave marks on a second server, the audit
// server, which no fault touches. Each writes a history (see internal/history, which lists
// what is judged). A round ends with all faults healed and every call returned, so that the
// history of a round can be judged by itself, and a failure ends the run where it happened.
// At rest no lock may have a holder, and no queue a waiter, unless a process left it there:
// by dying, by letting it expire, by handing it over.
//
// # Two classes
//
// In the first, the server remembers: it is frozen, killed and started again with its
// append-only file, written at each command; its users lose their rights, its network holds
// back, delays and cuts; clients are frozen and killed. Two holders at once are an error,
// always. In the second it forgets: keys are deleted and evicted, everything is flushed, it
// starts again empty. Then two may hold a lock at once for a renewal period, and it is
// counted how often and how long they did.
//
// # The schedule
//
// Faults come in lanes: those of the server, of the network and of the processes. Those of
// one lane come one after the other, the lanes run in parallel. Each lane deals its kinds
// of faults like cards, so that every kind comes before one comes twice. Which fault comes
// when, for how long and for which process depends on the seed alone. What the processes do
// then is random too, but how it interleaves depends on the machine: a seed repeats the
// faults, not the run.
//
// # What it does not judge
//
// A process that was frozen cannot stop being inside: what it sends after it woke up may
// come late. So a hold counts until the deadline that the hold itself reported, and a mark
// only if the hold was valid after the reply to it. A holder that does not look at its hold
// cannot be helped by any lock.
package stress
