// Package replication waits until replicas have what calls wrote. It knows nothing of
// locks.
//
// WAIT says how many replicas have acknowledged what was written before it *on its own
// connection*, and holds up all that comes behind it there. So there is one connection
// for it, on which the calls are sent, too, and which has no other use.
//
// # The life of a call
//
//	Replicate ─▶ queue ─▶ batch: the calls ─ WAIT ─▶ replies, one number ─▶ done
//	               ▲                          │         │
//	               │                          └ refused: done at once
//	               ├── NOSCRIPT: again, as EVAL ────────┤
//	               ├── the connection broke, and it ────┤
//	               │   was not made for this batch      │
//	               └── the client has left the server ──┘
//	                   meanwhile, and there is time
//
// A call that is refused does not wait for replicas: in a cluster it goes to another
// node (MOVED, ASK), which has a Batcher of its own.
//
// While one batch waits the next one gathers, so that any number of calls share one
// WAIT. What is queued has waited as well: no replica that could not acknowledge the
// batch before can have acknowledged it. So a call's time counts from the beginning,
// and a batch waits for as long as the last of its calls may.
//
// # The life of the connection
//
//	none ──a call waits──▶ dialled ──▶ in use ──┬── a minute without use ──▶ none
//	  ▲                       │                 ├── broken, or no answer ──▶ none
//	  └── fails: a pause; ────┘                 ├── no room, READONLY ──▶ none, after a pause
//	      its calls end not sent                └── another connection of the client
//	                                                was replaced ──▶ none
//
// The last two are for an address that leads to another server after a failover: the
// connection goes where the client's other ones go. What replicas have said of a server
// that the client has left is no promise: when it left while they were waited for, the
// calls are sent once more, or end with no replica known. What a call says of the server
// that it came to is for the caller to judge: one that writes a lock again finds out
// whether the lock is there.
//
// # Who owns what
//
// One goroutine, which begins with the first call, dials, writes, reads and runs done.
// It ends with Close, which ends the queued calls as not sent and those of the batch as
// uncertain. No mutex is held across I/O or while a done runs.
package replication
