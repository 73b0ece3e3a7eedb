package rreadwritelock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
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
