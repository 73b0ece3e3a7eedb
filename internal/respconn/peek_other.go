//go:build !unix || aix

package respconn

import "errors"

const canPeek = false

func peek(uintptr) (bool, error) { return false, errors.ErrUnsupported }
