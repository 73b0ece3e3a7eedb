package kinds_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// All keys and channels for a name must be in the same slot. For some names, those that Redisson uses are not.
func TestClusterRejectsNamesSpanningSlots(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	url := "redis-cluster://" + cluster.Addrs()[0]
	near, far := callers.Connect(t, url), callers.Connect(t, url)
	for kind, o := range objects {
		odds, names := []string{"a{b", "{}x", "x{}{y}"}, []string{redistest.Key(t), "замок " + redistest.Key(t)}
		if tagged := "{tag}" + redistest.Key(t); kind == "latch" { // its channel lacks the name's hash tag
			odds = append(odds, tagged, "a{b}c", "a}b")
		} else {
			names = append(names, tagged)
		}
		for _, odd := range odds {
			for _, call := range []enter{o.hold(near, odd), o.wait(near, odd)} {
				_, err := call(callers.Within(t))
				require.ErrorIs(t, err, redlatch.ErrInvalid, "%s %s", kind, odd)
			}
			for _, key := range []string{odd, protocol.TokenKey(odd)} {
				require.Zero(t, cluster.DoAt(t, key, "EXISTS", key), "%s %s", kind, odd)
			}
		}
		for _, name := range names {
			leave, err := o.hold(far, name)(callers.Within(t))
			require.NoError(t, err, "%s %s", kind, name)
			came := callers.Later(func() (func() error, error) { return o.wait(near, name)(callers.Within(t)) })
			require.NoError(t, leave())
			require.NoError(t, callers.Must(t, came, callers.Soon)())
		}
	}
}
