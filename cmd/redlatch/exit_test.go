package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExitErrorCarriesItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("why")
	require.ErrorIs(t, &exitError{code: 3, err: cause}, cause)
	require.Equal(t, "exit code 3", (&exitError{code: 3}).Error())
}
