// Package rights holds what the operator's manual says about the rights of users:
// no right too few, and none too many. It has tests only.
//
// The manual, docs/operations.md, has a line for each need, such as "Fair locks". For
// each of them there is a use here, which does with a client all that the line is
// for, and says what went wrong. A trial makes the manual's user and uses it:
//
//	all lines of the need ──▶ user ──▶ use ──▶ nothing is wrong
//	one right taken away  ──▶ user ──▶ use ──▶ an error, or a line in the log
//
// The second is repeated for each word of the need's line. A right that nobody
// misses does not belong there.
//
// Besides, a right that merely makes things better is missed in one line of the log,
// which names it; and whoever has all rights for one prefix can neither take, free,
// see nor wake the locks of another.
package rights
