package rreadwritelock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

func TestWriterPassesSuite(t *testing.T) {
	locksuite.RunInMemory(t, locksuite.Writer)
}

// No script can run while some of the reader's keys have moved. `make test` does not wait for the loss.
func TestReaderInHalfMovedSlotLosesHold(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2, 0)
	client := connect(t, "redis-cluster://"+cluster.Addrs()[0], redlatch.WithWatchdogTimeout(10*time.Second))
	rw := rreadwritelock.New(client, redistest.Key(t))
	hold := take(t, rw.Read())
	to := cluster.Nodes()[0]
	if to == cluster.Owner(t, rw.Read().Name()) {
		to = cluster.Nodes()[1]
	}
	cluster.MoveSlot(t, transport.HashSlot(rw.Read().Name()), to, func() {
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := rw.Read().TryLock(ctx)
			assert.Error(t, err, "no attempt runs")
			return transport.IsCode(err, "TRYAGAIN")
		}, soon, time.Millisecond)
		if testlevel.IsAll() {
			<-hold.Context(within(t)).Done()
			require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
		}
	})
	_ = hold.Unlock() // lost, unless it was renewed in time
	unlock(t, take(t, rw.Read()))
	require.Zero(t, cluster.Do(t, "EXISTS", rw.Read().Name()))
}
