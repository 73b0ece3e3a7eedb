// Package acl holds what users of the server need the right to: no right too few,
// and none too many.
//
// There is a [Need] for each thing that a user may be there for, such as fair locks.
// The operator's manual, docs/operations.md, has a line for each of them, and
// `redlatch doctor` tries what a user has of each. Both follow the one list here: tests
// compare the manual with it word by word, and doctor knows no other.
//
// The tests do with a client all that a need is for, and say what went wrong. A trial
// makes the manual's user and uses it:
//
//	all lines of the need ──▶ user ──▶ use ──▶ nothing is wrong
//	one right taken away  ──▶ user ──▶ use ──▶ an error, or a line in the log
//
// The second is repeated for each word of the need's line. A right that no
// call misses does not belong there.
//
// Besides, a right that merely makes things better is missed in one line of the log,
// which names it; and a user with all rights for one prefix can neither take, free,
// see nor wake the locks of another.
package acl
