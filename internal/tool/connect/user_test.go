package connect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// As redlatch.Open has it. Over TCP a user alone, without a colon, is the password.
func TestAUserOfOneServerNeedsAPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"redis://onlooker:@127.0.0.1:1", "unix://onlooker@/no/such/socket", "unix://onlooker:@/no/such/socket"} {
		_, err := New(Settings{Address: address})
		require.ErrorContains(t, err, "needs a password", address)
		require.NotContains(t, err.Error(), "onlooker")
		_, err = New(Settings{Address: address, Password: "any"})
		require.NoError(t, err)
	}
	require.Equal(t, "redis://sesame@h:6379", at(t, "redis://sesame@h").at.Full())
}
