// Package cli is what all commands of redlatch share: the flags that say where the
// server is, exit codes and what is told of errors, signals, questions, JSON, and what
// shells complete.
//
//	Execute ─▶ NewRoot ─▶ each Constructor, with the Globals ─▶ the command
//	                                                              │ error
//	           exit code, one line on standard error ◀────────────┘
//
// It is the only package below internal that knows the command line's library. What
// commands have to tell of locks and servers is found by packages without it: inspect,
// listing, follow, diagnosis.
package cli
