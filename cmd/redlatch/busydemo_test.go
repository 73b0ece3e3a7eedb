//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// busyDemo starts a demo and returns when all of its workers are connected and
// rounds were done. It also returns the name of the demo's lock.
func busyDemo(t *testing.T, s *redistest.Server) (*program, string) {
	t.Helper()
	const suffix = ":counter"
	p := start(t, nobody(t), "demo", "--duration", "1h", "--redis", s.URL())
	var names []string
	require.Eventually(t, func() bool {
		var err error
		names, err = redis.Strings(s.Do(t, "KEYS", "redlatch-demo:*"+suffix), nil)
		require.NoError(t, err)
		return len(names) == 1 && s.Clients(t) >= 9
	}, soon, pollEvery)
	return p, strings.TrimSuffix(names[0], suffix) + ":lock"
}
