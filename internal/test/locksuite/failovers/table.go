package failovers

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	// downAfter is how long Sentinels wait for a master that is silent, measuredDownAfter when the
	// table is made: on a machine that stands still a moment no master is silent for long.
	downAfter, measuredDownAfter = 3 * time.Second, time.Second
	// pauseBound, toldBound and servedBound are the limits of the figures, far above what
	// they are on an idle machine. Holders have to get ErrLost before their next renewal
	// would find the loss. A node of a cluster that stands still is detected only by calls
	// to it: waiters of a fair lock call it after their poll cap, ten seconds.
	pauseBound, lossBound, servedBound = 20 * time.Second, 12 * time.Second, 5 * time.Second
)

// Run tries each failure in a cluster and with Sentinels, and checks that every holder gets
// ErrLost, and that every waiter gets its lock, on Redis and on Valkey in turn. With
// REDLATCH_FAILOVER=full it does so on both, with five times as many locks and one after
// the other, and logs the table of docs/topologies.md; then leases are the default, else
// twice as long, so that a holder that learns of a loss from its next renewal is late.
func Run(t *testing.T, a Adapter) {
	t.Helper()
	full := os.Getenv("REDLATCH_FAILOVER") == "full"
	each, silence := size{50, 30 * time.Second}, measuredDownAfter
	if !full {
		t.Parallel()
		each, silence = size{10, 60 * time.Second}, downAfter
	}
	rows := &table{}
	for i, deployment := range []string{"cluster", "Sentinel"} {
		for j, f := range failures {
			for k, servers := range []string{"Redis", "Valkey"} {
				if !full && (i+j+k)%2 != 0 {
					continue
				}
				t.Run(deployment+", "+f.name+", "+servers, func(t *testing.T) {
					if !full {
						t.Parallel()
					}
					figures := f.try(t, a.start(t, deployment, servers, silence), each)
					figures.check(t, f.lossBoundOf(deployment, each))
					rows.add(t, figures.row(deployment+", "+f.name, servers, a.Name))
				})
			}
		}
	}
	if full {
		t.Log("\n" + columns + "\n" + strings.Join(rows.rows, "\n"))
	}
}

// lossBoundOf bounds the time until the last holder gets ErrLost.
func (f failure) lossBoundOf(deployment string, s size) time.Duration {
	if f.silent && deployment == "cluster" {
		return lossBound + s.lease/3 // its renewal finds out
	}
	return lossBound
}

// table gathers rows.
type table struct {
	mu   sync.Mutex // guards rows
	rows []string
}

func (tab *table) add(t *testing.T, row string) {
	t.Helper()
	t.Log(row)
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.rows = append(tab.rows, row)
}

// start starts servers of a kind, for one failure. Sentinels wait so long for a silent master.
func (a Adapter) start(t *testing.T, deployment, servers string, silence time.Duration) deployment {
	t.Helper()
	opts := []redistest.Option{mayCutOff()}
	if servers == "Valkey" {
		opts = append(opts, redistest.WithBinary(redistest.ValkeyBinary(t)))
	}
	if deployment == "Sentinel" {
		return withSentinels{a, redistest.StartSentinels(t, silence, opts...)}
	}
	return inCluster{a, redistest.StartCluster(t, 3, 1, opts...), redistest.Key(t)}
}

// check checks what must be so whatever has failed, with holders informed within a time.
func (f Figures) check(t *testing.T, notified time.Duration) {
	t.Helper()
	assert.Equal(t, f.Locks, f.Kept, "a lock that replicas had was lost")
	assert.Equal(t, f.Lost, f.Notified, "the holder of a lock that was lost was not notified")
	assert.Equal(t, f.Waiters, f.Served, "a waiter still waits")
	assert.Less(t, slices.Max(f.Pauses), pauseBound)
	assert.Less(t, f.NotifiedAfter, notified)
	assert.Less(t, f.Slowest, servedBound)
	if f.Lost == 0 {
		assert.Zero(t, f.Twice, "two had a lock at once though none was lost")
	}
}
