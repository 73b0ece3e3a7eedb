//go:build unix

package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSignalIsReportedAsCause(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken off")
	require.Equal(t, &ExitError{Code: 128 + int(syscall.SIGUSR2)}, UntilSignal(t.Context(), func(ctx context.Context) error {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2))
		<-ctx.Done()
		return broken
	}, syscall.SIGUSR2))
	require.Equal(t, broken, UntilSignal(t.Context(), func(context.Context) error { return broken }))
	require.NoError(t, UntilSignal(t.Context(), func(context.Context) error { return nil }))
}

func TestSignalCodeMatchesShell(t *testing.T) {
	t.Parallel()
	require.Equal(t, 143, SignalCode(syscall.SIGTERM))
	require.Equal(t, 130, SignalCode(os.Interrupt))
}
