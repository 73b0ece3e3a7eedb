package containers

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/test/containers/servers"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// patience is for machines that many suites, and containers, keep busy.
const patience = 2 * time.Minute

func TestOnOneServer(t *testing.T) {
	t.Parallel()
	each(t, plan.Servers, func(t *testing.T, kind servers.Kind) {
		t.Helper()
		server := kind.Start(t)
		t.Logf("on %s", server.Version)
		for _, over := range libraries {
			t.Run("locks over "+over.name, func(t *testing.T) {
				t.Parallel()
				locksuite.Run(t, locksuite.OnServer(server, over.onServer(t, server.Addr, "")))
			})
			t.Run("conformance over "+over.name, func(t *testing.T) {
				t.Parallel()
				transporttest.Run(t, func(t *testing.T) transporttest.Harness {
					t.Helper()
					t.Parallel()
					return onServer(t, over, server)
				})
			})
		}
	})
}

// onServer is the network between a case and the server, and a user of its own: what a
// case forbids concerns it alone.
func onServer(t *testing.T, over library, server *servers.Server) transporttest.Harness {
	t.Helper()
	seen := server.As(t, redistest.Key(t))
	proxy := redistest.NewProxy(t, server.Addr)
	h := breakable.Harness(proxy)
	h.New = over.onServer(t, proxy.Addr(), seen.User)
	h.Do, h.Forbid, h.Patience = seen.Do, seen.Forbid, patience
	h.Stop, h.Start = breakable.Outage(proxy, server.Do, "SCRIPT", "FLUSH")
	return h
}
