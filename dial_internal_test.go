package redlatch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// The master says where its replicas are, and a server in its place may be
// hostile.
func TestReplicaAtAnImpossibleAddressIsAnErrorWithoutThePassword(t *testing.T) {
	t.Parallel()
	set := defaults()
	master, err := set.parse("redis://user:sesame-open@localhost:6379")
	require.NoError(t, err)
	for _, addr := range []string{"a b:6379", "a%zz:6379", "\x00:1", "[::1:6379", "", "host", "sesame@x\n:1", "127.0.0.1:99999"} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // names need not be looked up
		_, err := set.nodes(master)(ctx, addr)
		require.Error(t, err, "%q", addr)
		require.NotContains(t, err.Error(), "sesame-open", "%q", addr)
	}
}
