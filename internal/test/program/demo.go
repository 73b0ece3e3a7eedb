//go:build unix

package program

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// BusyDemo starts a demo and returns when all of its workers are connected and
// rounds were done. It also returns the name of the demo's lock.
func BusyDemo(t *testing.T, s *redistest.Server) (*Process, string) {
	t.Helper()
	const suffix = ":counter"
	p := Start(t, NoServer(t), "demo", "--duration", "1h", "--redis", s.URL())
	var names []string
	require.Eventually(t, func() bool {
		var err error
		names, err = redis.Strings(s.Do(t, "KEYS", "redlatch-demo:*"+suffix), nil)
		require.NoError(t, err)
		return len(names) == 1 && s.Clients(t) >= 9
	}, Soon, PollEvery)
	return p, strings.TrimSuffix(names[0], suffix) + ":lock"
}
