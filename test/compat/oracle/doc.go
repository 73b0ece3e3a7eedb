// Package oracle compares this module's scripts with the scripts of live Redisson clients.
//
// A [Watch] uses MONITOR to capture Redisson's scripts ([Theirs]), which are never stored. A [Twin] plays each step on
// two servers that are in the same state, and compares the replies, keys, TTLs and messages. Each difference must be
// explained by a [Divergence], and each divergence must occur.
//
// A [Corpus] contains the recorded results of each [Case] for machines without Java. A [Stage] replays them.
//
// To add an operation, write an [Operation] in its [Kind], a Divergence for each intended difference, with a matching
// row in docs/protocol.md, and cases in test/compat/testdata. In test/compat, capture the script (capture.go), check
// that a Client sends ours (ours.go), and add the operation to the random players (players.go). Then run make vectors
// and make compat.
package oracle
