package rfencedlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
)

func TestFencedLocksPassSuite(t *testing.T) {
	for _, kind := range locksuite.Fenced {
		locksuite.RunInMemory(t, kind)
	}
}

func TestInAClusterOddNamesAreRefusedAndOthersHaveTokens(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	client := connect(t, "redis-cluster://"+cluster.Addrs()[0])
	for _, newLock := range []maker{rfencedlock.New, rfencedlock.NewFair} {
		for _, odd := range []string{"a{b", "{}x", "x{}{y}"} {
			_, err := newLock(client, odd).Lock(within(t))
			require.ErrorIs(t, err, redlatch.ErrInvalid, odd)
			require.Zero(t, cluster.DoAt(t, odd, "EXISTS", odd))
			require.Zero(t, cluster.DoAt(t, codec.TokenKey(odd), "EXISTS", codec.TokenKey(odd)), odd)
		}
		for _, name := range []string{redistest.Key(t), "{tag}" + redistest.Key(t), "замок " + redistest.Key(t)} {
			lock := newLock(client, name)
			before := lastToken(t, lock)
			for i := range int64(3) {
				hold := take(t, lock)
				require.Equal(t, before+i+1, hold.Token())
				require.NoError(t, hold.Unlock())
			}
		}
	}
}
