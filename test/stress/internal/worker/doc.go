// Package worker is a client process of the nemesis run: it takes locks in every way that
// there is, at random, and records what it did.
//
// # The life of a process
//
//	ready ──go n─▶ at work ──drain──▶ drained ──go──▶ …
//	                 │                  │
//	                 └──exit──▶ gone    └──quit──▶ bye
//
// Commands come as lines of its input, answers are lines of its output. The end of the
// input, which is the death of its parent, ends it. At work, a number of callers go from
// one session to the next; a session is a lock, taken by Lock, TryLock or Resume, with
// holds inside of holds, and given up by Unlock, LetExpire or HandOver. All callers share a
// client, which is replaced now and then: the old one is closed or shut down while they use
// it. Drained means that no caller holds or waits; the client goes on and resolves calls in
// doubt in the background. Exit ends the process with all that it holds, as a crash does.
// Bye reports how many goroutines are left after the client was closed beyond those before
// it was made.
//
// # What is looked at
//
// One goroutine samples every live hold, fifty times a second. A session asks the server
// now and then what it has, and leaves marks on the audit server, which no fault touches.
// Both go past the proxy through which the locks go. Package history judges the result.
package worker
