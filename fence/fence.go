// Package fence checks fencing tokens at the resource that a lock protects: a write with a token
// below the highest seen fails with [ErrLate]. Package rfencedlock issues tokens; any number that
// increases from one holder to the next works.
//
//	err := fence.Table{}.Check(ctx, tx, "orders:42", hold.Token()) // then write in tx
//
// [Table] guards data in a SQL database, [Redis] guards a key, and [Handler] guards the data of one
// HTTP server. Each makes the check atomic with the write; a separate check offers no protection.
//
// Do not retry a rejected write with the same token: another holder has acquired the lock since
// then. The same token is accepted any number of times. The package imports no clients or drivers.
package fence

import (
	"errors"
	"fmt"
)

var (
	// ErrLate means that the resource has seen a higher token. Nothing was written. The error is a
	// [*LateError].
	ErrLate = errors.New("fence: late: the resource has seen a higher token")

	// ErrNoToken means that a token is missing or below 1. Nothing was written.
	ErrNoToken = errors.New("fence: no token")
)

// LateError is the error for a rejected write. It wraps [ErrLate].
type LateError struct {
	Resource string // as given by the caller
	Token    int64  // of the rejected write
	Highest  int64  // the highest token that the resource has seen, or 0 if it is unknown
}

// Error names the resource and both tokens.
func (e *LateError) Error() string {
	return fmt.Sprintf("%v: %q: token %d, highest %d", ErrLate, e.Resource, e.Token, e.Highest)
}

// Unwrap returns [ErrLate].
func (e *LateError) Unwrap() error { return ErrLate }

func check(token int64) error {
	if token < 1 {
		return fmt.Errorf("%w: %d", ErrNoToken, token)
	}
	return nil
}
