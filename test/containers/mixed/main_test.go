package mixed

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	goredislib "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/peertest"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	// defaultReleases is the newest supported release of Redisson: the others take longer.
	defaultReleases = "4.3.1"
	// defaultWakeUps is how often two parties meet, with each kind of lock.
	defaultWakeUps = 4
	// atMost bounds what is waited for. It is no claim about speed.
	atMost = 30 * time.Second
)

// TestMain keeps go-redis from telling of each connection that a test breaks, and lets
// rueidis be late with what it closes in its own time, five seconds after.
func TestMain(m *testing.M) {
	goredislib.SetLogger(quiet{})
	redistest.Main(m,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
	)
}

// quiet logs nothing.
type quiet struct{}

// Printf is part of go-redis's logger.
func (quiet) Printf(context.Context, string, ...any) {}

// programs finds the peers of the releases to try. A machine without them skips the test,
// unless they are required.
func programs(t *testing.T) []peer.Program {
	t.Helper()
	releases := os.Getenv("REDLATCH_COMPAT_VERSIONS")
	if releases == "" {
		releases = defaultReleases
	}
	var all []peer.Program
	for _, release := range strings.Fields(releases) {
		loss := "NOT TRIED BESIDE REDISSON " + release + " IN A CLUSTER"
		all = append(all, peertest.Find(t, filepath.Join("..", "..", ".."), release, loss))
	}
	require.NotEmpty(t, all, "REDLATCH_COMPAT_VERSIONS names no release")
	return all
}

// wakeUps returns how often two parties are to meet.
func wakeUps(t *testing.T) int {
	t.Helper()
	text := os.Getenv("REDLATCH_WAKEUPS")
	if text == "" {
		return defaultWakeUps
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "REDLATCH_WAKEUPS")
	require.Positive(t, n, "REDLATCH_WAKEUPS")
	return n
}
