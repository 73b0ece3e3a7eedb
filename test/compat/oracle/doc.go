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
// A [Stage] plays a [Case], one step on one state, as Redisson does it and
// records that as a [Vector] of a [Corpus], for machines without Java. It can
// replay the vector with our scripts and compare, with the same list of
// divergences; here a case also says which of them must be seen:
//
//	live:      Case ──theirs──▶ Vector ──▶ test/compat/testdata/*.json
//	anywhere:  Vector ──ours──▶ differences ──▶ exactly those that are meant
//
// A case is played within one millisecond of the server's clock: times are set
// and looked at in one transaction, which is tried again if the clock moved. So
// recorded times are exact and the same each time, and no time may differ in a
// replay.
//
// # How to add an operation
//
//  1. Write an [Operation]: what Redisson's script is called with, by release, and
//     what ours is. Arguments that Redisson chooses by itself are tokens (latchTTL,
//     clockNow). If the reply tells a time that is left, or the step's owner gets a
//     score that is made from one, say so in TellsTime, and write in Check how
//     reply and score hang together on each side by itself. What a step needs to
//     tell and cannot is a new field of [Step]. Both sides are told the same time,
//     the step's, which need not be the time of day.
//     A kind whose divergences are many, as [ReadWrite] has, holds ours to its contract in
//     Check as well: then a divergence need only say where the contract differs.
//  2. Add it to its [Kind], or make a Kind in files of its own, as plain.go and
//     fair.go are, and add that to [Kinds].
//  3. Add a Divergence for each difference that is meant, with a row of the same
//     name and reason in docs/protocol.md.
//  4. Add cases, and let each say which divergences it means.
//  5. In test/compat: make a live Redisson send the script (capture in
//     scripts.go), hold that a Client sends ours (ours.go),
//     add a move that plays it at random (a new Kind is a new game, see
//     steps.go), and mutants of our script that must be noticed. Then
//     run make vectors and make compat.
package oracle
