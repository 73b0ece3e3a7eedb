package inspect

import (
	"errors"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

func TestUnreadNamesTheServersReason(t *testing.T) {
	t.Parallel()
	u := Unread{Keys: 1, Why: redis.Error("CLUSTERDOWN The cluster is down")}
	require.Regexp(t, "^1 key was not looked into: CLUSTERDOWN The cluster is down. A master is down", u.Text("keys"))
	u = Unread{Keys: 2, Why: redis.Error("ERR odd")}
	require.Equal(t, "2 keys were not looked into: ERR odd", u.Text("keys"))
	u.Why = redis.Error("NOPERM No permissions to access a key")
	require.Equal(t, "2 keys were not looked into: this user may not read them (NOPERM No permissions to access a key)", u.Text("keys"))
}

// A key that cannot be looked into is no key of another program.
func TestRefusedKeysAreDistinguishedFromOtherReplies(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"NOPERM No permissions", "CLUSTERDOWN The cluster is down", "MOVED 7 h:1", "ASK 7 h:1"} {
		_, is := refusal(redis.Error(text))
		require.True(t, is, text)
	}
	_, is := refusal(redis.Error("WRONGTYPE Operation against a key"))
	require.False(t, is, "it was replaced since SCAN has found it")
	require.NoError(t, unanswered(redis.Error("NOPERM")))
	require.Error(t, unanswered(errors.New("no node")))
}
