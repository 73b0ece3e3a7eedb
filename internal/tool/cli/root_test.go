package cli

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExitErrorCarriesItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("why")
	require.ErrorIs(t, &ExitError{Code: 3, Err: cause}, cause)
	require.Equal(t, "exit code 3", (&ExitError{Code: 3}).Error())
}
