package locksuite_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestLocksOnTheBuiltInTransport(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		t.Parallel()
		locksuite.Run(t, locksuite.OnServer(target, builtIn("redis://"+target.Addr())))
	})
}

func TestLocksInMemory(t *testing.T) {
	for _, kind := range locksuite.Kinds {
		locksuite.RunInMemory(t, kind)
	}
}

// services maps managed services to the commands that they do not support, as listed in docs/topologies.md.
var services = map[string][]string{
	"Aiven for Caching":              {"acl", "config", "role"},
	"Azure Cache for Redis":          {"config"},
	"Amazon ElastiCache, node-based": {"acl|setuser", "config"},
	"Amazon ElastiCache Serverless":  {"acl|setuser", "config", "client|id", "client|info", "client|kill", "psubscribe", "wait"},
	"Amazon MemoryDB":                {"acl|setuser", "config"},
	"Google Memorystore for Redis":   {"acl", "client", "config"},
}

func TestManualListsServices(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "topologies.md"))
	require.NoError(t, err)
	for name, without := range services {
		require.Contains(t, string(manual), "| "+name+" | `"+strings.ReplaceAll(strings.Join(without, "`, `"), "|", "\\|")+"` |\n")
	}
}

// Two servers are enough for the six services: one does not support CLIENT at all, and the other supports a part of it.
func TestLocksOnManagedServices(t *testing.T) {
	testlevel.All(t, "two more servers")
	t.Parallel()
	for _, client := range []bool{false, true} {
		var without []string
		for _, lacks := range services {
			if slices.Contains(lacks, "client|id") == client {
				without = append(without, lacks...)
			}
		}
		slices.Sort(without)
		without = slices.Compact(without)
		t.Run(strings.Join(without, " "), func(t *testing.T) {
			t.Parallel()
			s, url := redistest.StartWithout(t, without)
			d := locksuite.OnServer(s, builtIn(url))
			d.Uncounted = slices.Contains(without, "role")
			locksuite.Run(t, d)
		})
	}
}

func builtIn(url string) func(testing.TB) transport.Transport {
	return func(testing.TB) transport.Transport {
		return redisconn.NewRedigo(redisconn.Config{
			Dial: func(ctx context.Context) (redis.Conn, error) {
				return redis.DialURLContext(ctx, url, redis.DialWriteTimeout(3*time.Second))
			},
			Command: 3 * time.Second, Lease: 30 * time.Second, DialTimeout: 5 * time.Second,
		})
	}
}
