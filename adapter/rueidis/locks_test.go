package rueidis_test

import (
	"testing"

	lib "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// sharing returns what makes transports over client.
func sharing(client lib.Client) func(testing.TB) transport.Transport {
	return func(tb testing.TB) transport.Transport {
		tb.Helper()
		return over(tb, client)
	}
}

func TestLocksOnOneServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locksuite.Run(t, locksuite.OnServer(server, sharing(clientOf(t, plainly(server.Addr())))))
}
