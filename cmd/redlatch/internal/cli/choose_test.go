package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisurl"
)

func TestAddressWithoutPasswordIsValid(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"redis://u:p@h/1": "redis://h:6379/1",
		"redis-sentinel://h/m?sentinel_user=s&sentinel_password=q": "redis-sentinel://h:26379/m",
		"redis-cluster://u:p@h?sharded_pubsub=off":                 "redis-cluster://h:6379?sharded_pubsub=off",
	} {
		got, _ := withoutPassword(address)
		require.Equal(t, want, got)
		_, err := redisurl.Parse(got)
		require.NoError(t, err)
	}
}
