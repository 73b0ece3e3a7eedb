// Package monitor reads what MONITOR shows of a server's clients and finds the
// scripts they run.
//
// A line of MONITOR has a time, the database, the client's address and the
// command with its arguments, quoted. [Parse] undoes the quoting exactly, so
// that the texts and arguments of scripts come out byte for byte. A [Tape] is
// fed the lines in order; it remembers the text of every script that was loaded
// or run in full and so can name the text behind an EVALSHA:
//
//	line ── Parse ──▶ Line ── Tape.Add ──▶ Call (text, KEYS, ARGV)
//
// What a script itself calls is shown too, marked as coming from Lua, and is no
// call of a client's.
package monitor
