package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExitErrorCarriesItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("why")
	require.ErrorIs(t, &ExitError{Code: 3, Err: cause}, cause)
	require.Equal(t, "exit code 3", (&ExitError{Code: 3}).Error())
}

func TestWrittenKeepsTheCommandsOwnCode(t *testing.T) {
	t.Parallel()
	full := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	closed := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	held, unheld := &ExitError{Code: 125, Err: errors.New("why")}, &ExitError{Code: 124}
	for _, c := range []struct {
		err, lost error
		want      error
	}{
		{nil, nil, nil},
		{held, nil, held},
		{nil, full, &ExitError{Code: CodeFailed, Err: full}},
		{&ExitError{Code: CodeFailed, Err: errors.New("canceled")}, full, &ExitError{Code: CodeFailed, Err: full}},
		{held, full, held},
		{unheld, full, &ExitError{Code: 124, Err: full}},
		{nil, closed, &ExitError{Code: 141}},
		{&ExitError{Code: CodeFailed, Err: errors.New("canceled")}, closed, &ExitError{Code: 141}},
		{unheld, closed, unheld},
	} {
		require.Equal(t, c.want, written(c.err, c.lost), "%v, %v", c.err, c.lost)
	}
	own := &ExitError{Code: 125, Err: fmt.Errorf("the owner could not be printed: %w", full)}
	require.Equal(t, error(own), written(own, full))
}
