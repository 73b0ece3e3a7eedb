package rueidis_test

import (
	"testing"

	lib "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/locksuite"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/transport"
)

// deployment is a client's, and what runs a command where a key is.
func deployment(client lib.Client, do func(tb testing.TB, key, cmd string, args ...any) any, publish ...string) locksuite.Deployment {
	return locksuite.Deployment{
		New: func(tb testing.TB) transport.Transport {
			tb.Helper()
			return over(tb, client)
		},
		Do: do, Publish: publish,
	}
}

// onOne is Do on one server.
func onOne(s interface {
	Do(tb testing.TB, cmd string, args ...any) any
}) func(tb testing.TB, key, cmd string, args ...any) any {
	return func(tb testing.TB, _, cmd string, args ...any) any {
		tb.Helper()
		return s.Do(tb, cmd, args...)
	}
}

func TestLocksOnOneServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locksuite.Run(t, deployment(clientOf(t, plainly(server.Addr())), onOne(server), "PUBLISH"))
}
