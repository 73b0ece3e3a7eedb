package builtin

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

func TestFullServerErrorIsRecognized(t *testing.T) {
	t.Parallel()
	full := &transport.ServerError{Text: "ERR max number of clients reached"}
	require.True(t, IsFull(full))
	require.True(t, IsFull(fmt.Errorf("dial: %w", full)))
	require.False(t, IsFull(&transport.ServerError{Text: "ERR unknown command 'max number of clients'"}))
	require.False(t, IsFull(errors.New(full.Text)))
	require.False(t, IsFull(nil))
}
