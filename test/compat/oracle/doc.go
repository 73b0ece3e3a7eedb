// Package oracle compares this module's scripts with live Redissons' scripts.
//
// A [Watch] captures Redisson's scripts ([Theirs]) with MONITOR; they are never stored. A [Twin]
// of two servers plays each step on equal states, with Redisson's script on one and ours on the
// other, and compares replies, keys, TTLs and messages. A [Divergence] must explain each
// difference, and each divergence must occur. The next step starts from Redisson's state.
//
// A [Corpus] records [Case] results of live Redissons for machines without Java. A [Stage] replays
// them within one millisecond of the server's clock, so that all times must match exactly.
//
// To add an operation:
//
//  1. Write an [Operation]. Placeholders (latchTTL, clockNow) replace arguments that Redisson
//     chooses. Both sides get the step's time, which need not be the time of day.
//  2. Add it to its [Kind], or add a Kind to [Kinds].
//  3. Add a Divergence per intended difference, with the same row in docs/protocol.md.
//  4. Add cases to the kind's file in test/compat/testdata: operation, does, diverges, step,
//     before, and in results the releases that have it, as {"redisson": ["4.7.0"]}.
//  5. In test/compat, capture the script (capture.go), check that a Client sends ours (ours.go)
//     and play it at random (players.go). Then run make vectors and make compat.
package oracle
