// Package oracle holds this module's scripts against those of a live Redisson.
//
// First a [Watch] sees, through MONITOR, what Redisson sends when it is asked
// for something, and [Identify] says whether its KEYS and ARGV are what the
// release in question should send. That yields [Theirs]: Redisson's own scripts,
// kept in memory and nowhere else.
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
//
// Ours are two [Ways]: owners that one process alone uses have scripts of their
// own for release and re-entry; owners that travel do what Redisson does.
//
// # Recorded vectors
//
// A [Corpus] has cases, one step on one state each, with what live Redissons did and how ours
// differs, for machines without Java. A [Stage] records the one and replays the other:
//
//	live:      Case ──theirs──▶ Result ──▶ test/compat/testdata/*.json
//	anywhere:  Case ──ours──▶ Change ──▶ exactly the recorded one, for exactly the listed reasons
//
// A case is played within one millisecond of the server's clock: times are set and read in one
// transaction, which is tried again if the clock moved. So recorded times are exact, and no
// time may differ in a replay.
//
// # How to add an operation
//
//  1. Write an [Operation]: what Redisson's script is called with, by release, and our call.
//     Arguments that Redisson chooses by itself are tokens (latchTTL, clockNow). If the reply
//     is a time left, say so in TellsTime. What a step needs to say and cannot is a new field of
//     [Step]. Both sides are given the step's time, which need not be the time of day.
//  2. Add it to its [Kind], or add a Kind to [Kinds].
//  3. Add a Divergence for each intended difference, with a row of the same name and reason in
//     docs/protocol.md.
//  4. Add cases to the kind's file in test/compat/testdata: operation, does, diverges, step,
//     before, and in results the releases that have it, as {"redisson": ["4.7.0"]}.
//  5. In test/compat: make a live Redisson send the script (capture.go), check that a Client
//     sends ours (ours.go), and add a move that plays it at random (players.go). Then run make
//     vectors and make compat.
package oracle
