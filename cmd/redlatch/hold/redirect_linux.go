package hold

import (
	"os"

	"golang.org/x/sys/unix"
)

// redirect makes the number of one file that of another: the runtime writes to standard error by
// its number.
func redirect(to, of *os.File) error { return unix.Dup3(int(to.Fd()), int(of.Fd()), 0) }
