package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
)

func TestExitErrorWrapsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("why")
	require.ErrorIs(t, &ExitError{Code: 3, Err: cause}, cause)
	require.Equal(t, "exit code 3", (&ExitError{Code: 3}).Error())
}

func TestWrittenKeepsCommandExitCode(t *testing.T) {
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
	own := &ExitError{Code: 125, Err: fmt.Errorf("print the owner: %w", full)}
	require.Equal(t, error(own), written(own, full))
}

func TestErrorsMapToCommandExitCodes(t *testing.T) {
	t.Parallel()
	why, usual, runs := errors.New("why"), &cobra.Command{}, &cobra.Command{Annotations: RunFails}
	for _, c := range []struct {
		cmd  *cobra.Command
		ran  bool
		err  error
		code int
	}{
		{usual, false, why, CodeUsage},
		{usual, true, why, CodeFailed},
		{usual, true, fmt.Errorf("lock: %w", redlatch.ErrInvalid), CodeUsage},
		{usual, true, fmt.Errorf("after 2: %w", &ExitError{CodeFailed, redlatch.ErrInvalid}), CodeUsage},
		{usual, true, fmt.Errorf("after 2: %w", &ExitError{CodeConflict, why}), CodeConflict},
		{runs, false, why, CodeRunFailed},
		{runs, true, redlatch.ErrInvalid, CodeRunFailed},
		{runs, true, &ExitError{CodeFailed, why}, CodeFailed}, // --conflict-exit-code 1
	} {
		require.Equal(t, &ExitError{Code: c.code, Err: c.err}, coded(c.cmd, c.ran, c.err))
	}
	require.Equal(t, &ExitError{Code: 1}, coded(runs, true, &ExitError{Code: 1}), "the command's own")
}
