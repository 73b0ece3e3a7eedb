package redisurl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisurl"
)

func TestServerHasTheCredentialsOfItsAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]redisurl.Server{
		"redis://host":                   {Network: "tcp", Addr: "host:6379"},
		"rediss://host:7000/":            {Network: "tcp", Addr: "host:7000"},
		"redis://[::1]/3":                {Network: "tcp", Addr: "[::1]:6379", DB: 3},
		"redis://[::1]:1/3/":             {Network: "tcp", Addr: "[::1]:1", DB: 3},
		"redis://user:p%40ss@host":       {Network: "tcp", Addr: "host:6379", User: "user", Password: "p@ss"},
		"redis://:pass@host":             {Network: "tcp", Addr: "host:6379", Password: "pass"},
		"redis://pass@host":              {Network: "tcp", Addr: "host:6379", Password: "pass"},
		"unix:///run/redis.sock":         {Network: "unix", Addr: "/run/redis.sock"},
		"unix://user:pass@/r.sock?db=12": {Network: "unix", Addr: "/r.sock", User: "user", Password: "pass", DB: 12},
	} {
		a, err := redisurl.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, a.Server(), text)
	}
}
