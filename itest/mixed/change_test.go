package mixed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/compat/oracle"
	"github.com/redlatch/redlatch/internal/compat/peer"
	"github.com/redlatch/redlatch/internal/locksuite"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/transport"
)

// TestBothLanguagesShareLocksWhileAClusterChanges has workers of both languages take
// locks in one slot while the slot moves and while its master is killed. A slot that
// moves costs nothing: never two at once. A fail-over may lose what was written last, so
// that is not held then. That everybody goes on is, each time.
//
//nolint:tparallel // a Java machine and a cluster for each release are enough at a time
func TestBothLanguagesShareLocksWhileAClusterChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers and a Java machine")
	}
	t.Parallel()
	releases := programs(t)
	for _, program := range releases {
		t.Run(program.Version, func(t *testing.T) {
			java := startJava(t, program)
			c := redistest.StartCluster(t, 3, 1)
			name := redistest.Key(t)
			workers := both(t, java, c, name)

			all := start(t, workers)
			all.progress(3)
			for i := range 3 {
				c.MoveSlot(t, codec.Slot(name), c.Nodes()[i], func() { time.Sleep(50 * time.Millisecond) })
				t.Logf("a slot has moved: everybody had three turns after %v", all.progress(3).Round(time.Millisecond))
			}
			assert.Zero(t, all.stop("slots that move"), "two had a lock at once")

			all = start(t, workers)
			all.progress(3)
			owner := c.Owner(t, name)
			began := time.Now()
			owner.Kill()
			c.AwaitOwner(t, name, owner)
			t.Logf("a master was killed: another one after %v", time.Since(began).Round(time.Millisecond))
			t.Logf("everybody had three turns after another %v", all.progress(3).Round(time.Millisecond))
			all.stop("a master that is killed")
		})
	}
}

// both makes workers of four clients, two of each language, for two locks of each kind
// in name's slot.
func both(t *testing.T, java *peer.Peer, c *redistest.Cluster, name string) (all []worker) {
	t.Helper()
	often := peer.Command{"scan": 1000} // Redisson looks who serves what every five seconds
	ours := []*goParty{overGoRedis(t, c, transport.ShardingAuto), overRueidis(t, c, transport.ShardingAuto)}
	theirs := []*javaParty{connect(t, java, c, "AUTO", often), connect(t, java, c, "AUTO", often)}
	release, err := oracle.ParseRelease(java.Version)
	require.NoError(t, err)
	kinds := locksuite.Kinds
	if !release.TellsQueuedLeft() {
		kinds = kinds[:1] // its fair waiters may sleep for ever when a holder dies
	}
	for _, kind := range kinds {
		for _, which := range []string{"-a", "-b"} {
			l := target{kind: kind, name: "{" + name + "}" + kind.Name + which}
			for _, g := range ours {
				all = append(all, goWorker(g, l))
			}
			for _, j := range theirs {
				all = append(all, javaWorker(j, l))
			}
		}
	}
	return all
}

func TestTheJudgeSeesTwoAtOnce(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time {
		return time.UnixMilli(1_700_000_000_000).Add(time.Duration(ms) * time.Millisecond)
	}
	long, inside, next, after := turn{"long", at(0), at(9)}, turn{"inside", at(2), at(3)}, turn{"next", at(8), at(12)}, turn{"after", at(12), at(20)}
	require.Empty(t, overlaps(nil))
	require.Empty(t, overlaps([]turn{after, long}))
	require.Empty(t, overlaps([]turn{after, next}), "one ends when the other begins")
	require.Len(t, overlaps([]turn{inside, long}), 1)
	require.Len(t, overlaps([]turn{after, next, inside, long}), 2, "the long one, and not the last, is compared with")
}
