package rsemaphore

import (
	"context"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/rlock"
)

// Hold is permits of one semaphore that were acquired together, until they are given up or
// lost. All methods are safe for concurrent use, by any goroutine.
type Hold struct {
	lock *rlock.Hold
	n    int
}

// Internal returns the hold as other packages of this module know it.
func (h *Hold) Internal() *hold.Hold { return h.lock.Internal() }

// Name returns the semaphore's name.
func (h *Hold) Name() string { return h.lock.Name() }

// N returns how many permits the hold has.
func (h *Hold) N() int { return h.n }

// ID returns the id of the first permit, 32 hexadecimal digits, as Redisson's acquire returns
// it. A client that has the id can release the permit. It sends nothing.
func (h *Hold) ID() string { return h.ids()[:idChars] }

// IDs returns the ids of all permits, as [Hold.ID].
func (h *Hold) IDs() []string { return strings.Split(h.ids(), ",") }

func (h *Hold) ids() string {
	text, _ := h.lock.Internal().Request().Owner.(string) // always one
	return text
}

// Err returns nil while the hold has all its permits, and afterwards why not: ErrLost, as a
// redlatch.Loss that tells the reason, ErrMaxHold, ErrNotHeld after Release or LetExpire, or
// ErrClosed. It asks the clocks and not the server.
func (h *Hold) Err() error { return h.lock.Err() }

// Remaining returns how long the hold lasts if it is not renewed any more, less the loss margin;
// 0 when it is over.
func (h *Hold) Remaining() time.Duration { return h.lock.Remaining() }

// Context returns a context that ends when parent does and when the hold does. Its cause, see
// context.Cause, is then what [Hold.Err] returns. With a fixed lease or a maximum it has that
// deadline. Use it for the work that needs the permits. It proves nothing: to acquire with it
// takes other permits.
func (h *Hold) Context(parent context.Context) context.Context { return h.lock.Context(parent) }

// Release gives the permits back. It needs no context: it takes one command timeout at most,
// less when less is left of the lease. The hold's contexts end before anything is sent. Later
// calls do nothing and return the first one's result.
//
// It returns nil when the hold had its permits until now. ErrLost: one of them was lost before;
// the others are given back all the same. ErrMaxHold: the hold had reached its maximum.
// ErrUncertain or ErrNotSent: Redis did not answer in time; the release goes on in the
// background until the lease is over, which does no harm when it arrives twice. ErrClosed: the
// client was closed, and the permits are left to their lease. It sends one EVALSHA.
func (h *Hold) Release() error { return named("release", h.lock.Unlock()) }

// LetExpire ends the hold without giving the permits back: they are not renewed any more and come
// back when their lease is over, or when another client releases their ids. It sends nothing.
// Errors are those of rlock.Hold.LetExpire.
func (h *Hold) LetExpire() error { return named("let-expire", h.lock.LetExpire()) }
