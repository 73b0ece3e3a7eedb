//go:build !unix || aix

package wire

import "errors"

// canPeek says that sockets cannot be looked at without reading.
const canPeek = false

func peek(uintptr) (bool, error) { return false, errors.ErrUnsupported }
