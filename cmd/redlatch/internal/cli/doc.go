// Package cli is what all commands of redlatch share: the flags for the server, exit codes
// and how errors are printed, signals, questions, JSON, and completions.
//
//	Execute ─▶ NewRoot ─▶ each Constructor, with the Globals ─▶ the command
//	                                                              │ error
//	           exit code, one line on standard error ◀────────────┘
//
// It is the only package below internal that knows the command line's library. Packages
// without it find out what commands show of locks and servers: inspect, listing, follow,
// diagnosis.
package cli
