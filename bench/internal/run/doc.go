// Package run carries a benchmark out: which contestants do which work, in turn, and
// what came of each round.
package run
