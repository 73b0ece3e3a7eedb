// Package limits says which names, leases and waits a lock can have. It is pure.
package limits

import "errors"

// ErrInvalid says that an argument cannot be used. All errors of this package wrap it.
var ErrInvalid = errors.New("redlatch: invalid argument")
