// Package fence has checks for the resources that a lock protects: they refuse a write with a
// fencing token below the highest that they have seen. Package rfencedlock makes such tokens;
// any number that only grows from one holder to the next will do.
//
// A check protects only when it and the write are one step for the resource. Each guard says
// how it makes them one:
//
//	resource         guard    check and write are one step, because
//	SQL database     Table    both are in one transaction, and the check locks its row
//	Redis            Redis    both are in one script
//	HTTP server      Handler  requests with lower tokens end before one with a higher begins
//
// A refused write gives [ErrLate]. It is not tried again with the same token: another holder
// has the lock, or has had it since. The same token is accepted as often as it comes: a
// holder may write more than once.
//
// Nothing here talks to Redis but what Redis.Eval is, and no package of other makers is
// imported.
package fence

import (
	"errors"
	"fmt"
)

var (
	// ErrLate says that the resource has seen a higher token: another holder has written
	// since, and nothing was written now.
	ErrLate = errors.New("fence: late: the resource has seen a higher token")

	// ErrNoToken says that a token is missing or below 1. Nothing was written.
	ErrNoToken = errors.New("fence: no token")
)

// LateError is the error of a refused write. It wraps [ErrLate].
type LateError struct {
	// Resource is what was to be written.
	Resource string
	// Token came with the write.
	Token int64
	// Highest is the highest token that the resource has seen, 0 when it is not known.
	Highest int64
}

// Error names the resource and both tokens.
func (e *LateError) Error() string {
	return fmt.Sprintf("%v: %q was to be written with token %d, and has seen %d", ErrLate, e.Resource, e.Token, e.Highest)
}

// Unwrap returns [ErrLate].
func (e *LateError) Unwrap() error { return ErrLate }

// check returns why a token cannot be one.
func check(token int64) error {
	if token < 1 {
		return fmt.Errorf("%w: %d", ErrNoToken, token)
	}
	return nil
}
