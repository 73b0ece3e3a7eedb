//go:build unix && !aix

package respconn

import (
	"errors"
	"io"
	"syscall"
)

const canPeek = true

// peek reports whether bytes have arrived. It returns io.EOF if the peer has closed the connection.
func peek(fd uintptr) (bool, error) {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return false, nil
	case err != nil:
		return false, err
	case n == 0:
		return false, io.EOF
	}
	return true, nil
}
