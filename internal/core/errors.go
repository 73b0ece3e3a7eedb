package core

import (
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/transport"
)

// The errors that the root package exports under the same names. They live here
// so that the packages below it can return them.
var (
	ErrNotAcquired = errors.New("redlatch: lock not acquired")
	ErrNotHeld     = errors.New("redlatch: lock not held")
	ErrLost        = errors.New("redlatch: lock lost")
	ErrWrongType   = errors.New("redlatch: key holds something that is no lock")
	ErrClosed      = transport.ErrClosed
	ErrUncertain   = transport.ErrUncertain
	ErrNotSent     = transport.ErrNotSent
)

// refused lists the error codes with which a server turns a call away before it
// runs, for reasons that pass.
var refused = []string{"LOADING", "BUSY", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "FAILOVER"}

// Passing reports whether err says that the call did not run and may succeed
// later: not sent, or refused by a server that is starting, busy or failing over.
func Passing(err error) bool {
	if errors.Is(err, transport.ErrNotSent) && !errors.Is(err, transport.ErrClosed) {
		return true
	}
	var se *transport.ServerError
	if !errors.As(err, &se) {
		return false
	}
	for _, code := range refused {
		if se.Code() == code {
			return true
		}
	}
	return false
}

// Explain gives the server errors that users meet a name of their own.
func Explain(err error) error {
	if transport.IsCode(err, "WRONGTYPE") {
		return fmt.Errorf("%w: %w", ErrWrongType, err)
	}
	return err
}

func isUncertain(err error) bool { return errors.Is(err, transport.ErrUncertain) }
