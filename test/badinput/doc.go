// Package badinput tests what the library does with input that makes no sense. It has tests
// only.
//
// # From the caller
//
// Every exported function, method and option is in a table, by its name, and is called with
// values that its types permit but that make no sense: names that are empty, a mebibyte
// long, binary, not UTF-8, or full of braces; numbers and durations that are negative,
// zero, or at the ends of their range; nil for what may be nil. One argument is bad at a
// time, the others are as they should be:
//
//	the exported names, read from the source ──▶ each is in the table, or the reason why not
//	                                                    │
//	a bad value for each type of argument ──────────────┤
//	                                                    ▼
//	                                    call, on fake time and a server in memory
//	                                                    │
//	     no panic but those that are documented ◀───────┤
//	     it returns, within a bound of fake time ◀──────┤
//	     an error is one of ours and short ◀────────────┘
//
// A function that is added without a row is red.
//
// # From the server
//
// A transport answers each script and command that a lock sends, in its turn, with replies
// that no server gives, while everything else is answered as it should be. A server on a
// real socket announces strings and arrays that no memory could hold, and sends what is no
// protocol at all. Each call returns in time with an error that names what was wrong.
package badinput
