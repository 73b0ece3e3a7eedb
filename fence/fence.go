// Package fence checks fencing tokens at the resources that a lock protects: it rejects a write
// whose token is lower than the highest seen. Package rfencedlock issues such tokens; any number that
// grows from one holder to the next works.
//
// The check protects only if it is atomic with the write:
//
//	resource         guard    check and write are atomic because
//	SQL database     Table    both are in one transaction, and the check locks its row
//	Redis            Redis    both are in one script
//	HTTP server      Handler  requests with lower tokens end before one with a higher begins
//
// A rejected write returns [ErrLate]. Do not retry it with the same token: another holder has the
// lock, or has had it since. The same token is accepted any number of times. The package imports no
// clients or drivers.
package fence

import (
	"errors"
	"fmt"
)

var (
	// ErrLate means that the resource has seen a higher token. Nothing was written.
	ErrLate = errors.New("fence: late: the resource has seen a higher token")

	// ErrNoToken means that a token is missing or below 1. Nothing was written.
	ErrNoToken = errors.New("fence: no token")
)

// LateError is the error of a rejected write. It wraps [ErrLate].
type LateError struct {
	Resource string // as given by the caller
	Token    int64  // of the rejected write
	Highest  int64  // the highest token that the resource has seen, 0 if unknown
}

// Error names the resource and both tokens.
func (e *LateError) Error() string {
	return fmt.Sprintf("%v: %q was to be written with token %d, and has seen %d", ErrLate, e.Resource, e.Token, e.Highest)
}

// Unwrap returns [ErrLate].
func (e *LateError) Unwrap() error { return ErrLate }

func check(token int64) error {
	if token < 1 {
		return fmt.Errorf("%w: %d", ErrNoToken, token)
	}
	return nil
}
