//go:build unix

package leader_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/test/trials"
)

// Under `make test-all`, the leader is killed and stalled 200 times each, in ten concurrent elections. Half
// of them use fair locks.
func TestKilledAndStalledProcessesNeverLeadTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range testlevel.Rounds(1, 10) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			f := trials.Start(t, trials.Args{URL: s.URL(), Name: redistest.Key(t), Other: i%2 == 1})
			for range testlevel.Rounds(1, 20) {
				f.Kill(trialLease / 2)
				f.Stall(time.Millisecond)
			}
			f.Judge()
		})
	}
}
