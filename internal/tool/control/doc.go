// Package control is how redlatch release reaches the process that redlatch hold -s has left in
// the background: a socket in a folder of the user's own.
//
//	hold -s: Listen(owner) ─▶ Server.Requests ─▶ (the lock is freed) ─▶ Request.Answer
//	                             ▲                                        │
//	release:  Ask(path, owner) ──┘◀───────────────────────────────────────┘
//
// Nothing is sent to a number of a process, which another one may have by then: a socket without
// its process refuses, and a process answers for its own owner alone.
package control

import "errors"

var (
	// ErrEnded means that there is no socket: the process has ended in order, or never was.
	ErrEnded = errors.New("no hold of this owner is left")
	// ErrKilled means that the process is gone without an answer.
	ErrKilled = errors.New("the process that held it was killed")
	// ErrOther means that the process holds for another owner.
	ErrOther = errors.New("it is a hold of another owner")
)

// Answer is what became of a hold.
type Answer struct {
	// Code is the exit code for that.
	Code int `json:"code"`
	// Text tells of it, "" where all went well.
	Text string `json:"text,omitempty"`
}
