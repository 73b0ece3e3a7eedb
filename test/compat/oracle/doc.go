// Package oracle compares this module's scripts with live Redissons' scripts.
//
// A [Watch] captures Redisson's scripts ([Theirs]) with MONITOR; they are never stored. A [Twin] of two servers plays
// each step on equal states and compares replies, keys, TTLs and messages. A [Divergence] must explain each difference,
// and each divergence must occur.
//
// A [Corpus] records [Case] results for machines without Java. A [Stage] replays them within one millisecond of the
// server's clock, so that all times must match exactly.
//
// To add an operation, write an [Operation] in its [Kind], a Divergence for each intended difference, with a matching
// row in docs/protocol.md, and cases in test/compat/testdata. In test/compat, capture the script (capture.go), check
// that a Client sends ours (ours.go), and add it to the random players (players.go). Then run make vectors and make
// compat.
package oracle
