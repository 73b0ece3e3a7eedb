// Package program runs redlatch as a program, for the tests of its commands.
//
//	TestMain ─▶ Main ─▶ the tests ─▶ Start, Finish ─▶ the test binary once more, with Env
//	                                                        │
//	              Process.Line, Rest, Outcome, Golden ◀─────┘ Main: cli.Execute
//
// The test binary is the program: so nothing need be built, and the race detector
// watches both. TestMain chooses the commands.
//
// Here are also the locks, owners and scripts that tests of several commands use.
package program
