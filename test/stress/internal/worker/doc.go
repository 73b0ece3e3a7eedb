// Package worker is a client process of the nemesis run: it takes locks in every
// way that there is, at random, and writes down what it did.
//
// # The life of a process
//
//	ready ──go──▶ at work ──drain──▶ drained ──go──▶ …
//	                 │                  │
//	                 └──exit──▶ gone    └──quit──▶ bye
//
// Commands come as lines of its input, answers are lines of its output. The end of
// the input, which is the death of its parent, ends it. At work, a number of callers
// go from one session to the next; a session is a lock, taken by Lock, TryLock or
// Resume, with holds inside of holds, and given up by Unlock, LetExpire or HandOver.
// All callers share a client, which is replaced now and then: the old one is closed
// or shut down under their hands. Drained means that no caller holds or waits; the
// client lives on and settles in the background what is open. Exit ends the process
// with all that it holds, as a crash does. Bye tells how many goroutines are left
// after the client was closed beyond those before it was made.
//
// # What is looked at
//
// One goroutine samples every hold that lives, fifty times a second. A session asks
// the server now and then what it has, and leaves marks on the ledger, a server
// that no fault touches. Both go past the proxy through which the locks go. See
// package history for what is made of it.
package worker
