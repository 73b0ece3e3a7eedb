// Package oracle holds this module's scripts against those of a live Redisson.
//
// First a [Watch] sees, through MONITOR, what Redisson sends when it is asked
// for something, and [Identify] says which operation a script is and whether its
// KEYS and ARGV are what the release in question should send. That yields
// [Theirs]: Redisson's own scripts, kept in memory and nowhere else.
//
// Then a [Twin], two servers, plays steps: both are put into the same state, the
// step runs as Redisson's script on the one and as ours on the other, and
// everything that can be seen is compared:
//
//	        ┌─ theirs ─▶ reply, keys, times to live, messages ─┐
//	state ──┤                                                  ├──▶ differences
//	        └─ ours ───▶ reply, keys, times to live, messages ─┘
//
// Each difference must be explained by a [Divergence], which has a reason, and
// each divergence must occur, or the list is wrong. The state then is that of
// Redisson's side, and the next step begins from there.
package oracle
