// Package holding takes a lock, or a permit, as the flags of a command say, and gives it up:
// what redlatch run and redlatch hold share.
//
//	Options.Register ─▶ Options.Check ─▶ Options.Acquire ─▶ Held ─▶ Options.GiveUp
//	                                          │ error              Options.LossOf
//	                 an ExitError, one line ◀─┘
//
// Its functions are called by one goroutine of a command at a time.
package holding
