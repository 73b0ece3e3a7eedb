//go:build !unix || aix

package respconn

import "errors"

// canPeek says that sockets cannot be looked at without reading.
const canPeek = false

func peek(uintptr) (bool, error) { return false, errors.ErrUnsupported }
