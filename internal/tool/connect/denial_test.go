package connect

import (
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// Redis before version 7 says within the error of a script what it refuses, with a minus sign.
func TestRefusalsWithinAScriptAreUnderstood(t *testing.T) {
	t.Parallel()
	s := at(t, "redis://h:1")
	const within = "ERR Error running script (call to f_d10da0e3d9e12b1b7b53f4e0d04c6bd8f6d2b5a4): @user_script:1: @user_script: 1: "
	require.EqualError(t, s.Problem(redis.Error(within+"-OOM command not allowed when used memory > 'maxmemory'.  ")),
		"Redis at redis://h:1 refuses: OOM command not allowed when used memory > 'maxmemory'. "+
			"Its memory is full: make room, or raise maxmemory. Locks are small, and fail with the rest.")
	require.ErrorContains(t, s.Problem(redis.Error(within+"-READONLY You can't write against a read only replica. ")), "replica. It is a replica: name its master")
	require.ErrorContains(t, s.Problem(redis.Error(within+"-MISCONF Redis is configured to save RDB snapshots.  ")), "snapshots. It cannot save its data")
}
