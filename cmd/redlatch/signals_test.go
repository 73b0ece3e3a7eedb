//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A signal is the reason whatever it has broken off, and the only one.
func TestASignalIsTheReasonWhateverItBreaksOff(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken off")
	end := func(say error) error {
		return untilTold(t.Context(), say, func(ctx context.Context) error {
			require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2))
			<-ctx.Done()
			return broken
		}, syscall.SIGUSR2)
	}
	require.Equal(t, &exitError{code: 128 + int(syscall.SIGUSR2)}, end(nil))
	require.Equal(t, &exitError{code: 128 + int(syscall.SIGUSR2), err: errInterrupted}, end(errInterrupted))
	require.Equal(t, broken, untilTold(t.Context(), nil, func(context.Context) error { return broken }))
	require.NoError(t, untilTold(t.Context(), errInterrupted, func(context.Context) error { return nil }))
}

func TestCodeOfASignalIsTheShells(t *testing.T) {
	t.Parallel()
	require.Equal(t, 143, signalCode(syscall.SIGTERM))
	require.Equal(t, 130, signalCode(os.Interrupt))
}
