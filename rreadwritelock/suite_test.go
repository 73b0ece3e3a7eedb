package rreadwritelock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

func TestWriterPassesSuite(t *testing.T) {
	locksuite.RunInMemory(t, locksuite.Writer)
}

func TestInAClusterOddNamesAreRefusedAndOthersAreLocked(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	client := connect(t, "redis-cluster://"+cluster.Addrs()[0])
	for _, odd := range []string{"a{b", "{}x", "x{}{y}"} {
		rw := rreadwritelock.New(client, odd)
		for _, l := range []*rlock.Lock{rw.Read(), rw.Write()} {
			_, err := l.Lock(within(t))
			require.ErrorIs(t, err, redlatch.ErrInvalid, odd)
			require.Zero(t, cluster.DoAt(t, odd, "EXISTS", odd))
		}
	}
	for _, name := range []string{redistest.Key(t), "{tag}" + redistest.Key(t), "замок " + redistest.Key(t)} {
		rw := rreadwritelock.New(client, name)
		w := take(t, rw.Write())
		r := enter(t, rw.Read(), w)
		unlock(t, w)
		require.EqualValues(t, 1, cluster.DoAt(t, name, "EXISTS", codec.HoldKey(name, r.Owner().String(), 1)))
		unlock(t, r)
		require.Zero(t, cluster.DoAt(t, name, "EXISTS", name))
	}
}

// No script can run while some of the reader's keys have moved.
func TestAReaderWhoseSlotStaysHalfMovedIsTold(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2, 0)
	client := connect(t, "redis-cluster://"+cluster.Addrs()[0], redlatch.WithWatchdogTimeout(2*time.Second))
	rw := rreadwritelock.New(client, redistest.Key(t))
	hold := take(t, rw.Read())
	to := cluster.Nodes()[0]
	if to == cluster.Owner(t, rw.Read().Name()) {
		to = cluster.Nodes()[1]
	}
	cluster.MoveSlot(t, transport.HashSlot(rw.Read().Name()), to, func() {
		<-hold.Context(within(t)).Done()
		require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
		_, err := rw.Read().TryLock(within(t))
		require.Error(t, err, "no attempt runs")
	})
	unlock(t, take(t, rw.Read()))
	require.Zero(t, cluster.Do(t, "EXISTS", rw.Read().Name()))
}
