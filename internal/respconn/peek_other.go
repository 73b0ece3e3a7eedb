//go:build !unix || aix

package respconn

import "errors"

// canPeek says that sockets cannot be peeked at.
const canPeek = false

func peek(uintptr) (bool, error) { return false, errors.ErrUnsupported }
