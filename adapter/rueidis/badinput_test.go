package rueidis_test

import (
	"context"
	"testing"
	"time"

	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/test/exported"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// badInput are the exported functions, and what tries each with values that its types
// permit and no program needs.
var badInput = map[string]func(t *testing.T){
	"rueidis.New":         badClients,
	"rueidis.NewSentinel": badSentinels,
	"rueidis.Dialer":      badServers,
}

func TestExportedFunctionsSurviveBadInput(t *testing.T) {
	t.Parallel()
	for name, try := range badInput {
		t.Run(name, func(t *testing.T) { t.Parallel(); try(t) })
	}
}

func TestEveryExportedFunctionHasARowOfBadInput(t *testing.T) {
	t.Parallel()
	names := exported.Names(t, ".")
	for name := range names {
		assert.Contains(t, badInput, name, "it is tried with no bad input: add a row")
	}
	for name := range badInput {
		assert.Contains(t, names, name, "it does not exist any more")
	}
}

// badClients are of no use, or of none any more.
func badClients(t *testing.T) {
	t.Helper()
	works := clientOf(t, plainly(redistest.Shared(t).Addr()))
	require.PanicsWithValue(t, "rueidis: nil Context", func() { _, _ = rueidis.New(nil, works) }) //nolint:staticcheck // the mistake
	for _, c := range []lib.Client{nil, ofNoMode{works}} {
		tr, err := newTransport(t.Context(), c)
		require.ErrorContains(t, err, "rueidis: ")
		require.Nil(t, tr)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tr, err := newTransport(ended, works)
	require.NoError(t, err, "nothing is asked")
	_, err = do(tr, "GET", "key")
	require.NoError(t, err)
	require.NoError(t, tr.Close())

	closed, err := lib.NewClient(plainly(redistest.Shared(t).Addr()))
	require.NoError(t, err)
	closed.Close()
	for _, c := range []lib.Client{closed, inACluster{closed}} {
		tr, err := newTransport(t.Context(), c, nil, redlatch.WithShardedPubSub(transport.ShardingOn))
		require.NoError(t, err)
		_, err = do(tr, "GET", "key")
		require.ErrorIs(t, err, transport.ErrNotSent)
		_, err = tr.Subscribe(ended, "channel")
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, tr.Close())
	}
	_, err = rueidis.New(t.Context(), inACluster{closed})
	require.ErrorIs(t, err, lib.ErrClosing)
}

// ofNoMode is a client of a kind that is not there yet.
type ofNoMode struct{ lib.Client }

func (ofNoMode) Mode() lib.ClientMode { return "" }

// inACluster is a client that says that it leads to a cluster.
type inACluster struct{ lib.Client }

func (inACluster) Mode() lib.ClientMode { return lib.ClientModeCluster }

// badSentinels are of no use, and refused, or not there.
func badSentinels(t *testing.T) {
	t.Helper()
	none := lib.SentinelOption{MasterSet: "m"}
	for _, addrs := range [][]string{{""}, {"127.0.0.1:1"}, {"no such host:1", "\x00"}} {
		tr := overSentinels(t, lib.ClientOption{InitAddress: addrs, Sentinel: none, PipelineMultiplex: 255, RingScaleEachConn: -1})
		_, err := do(tr, "GET", "key")
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.NoError(t, tr.Close())
	}
}

// badServers are not there, or options that are of no use.
func badServers(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, opt := range []lib.ClientOption{{}, {PipelineMultiplex: 255, RingScaleEachConn: -1}, {InitAddress: []string{"a:1"}, ReplicaOnly: true}} {
		for _, addr := range []string{"", "127.0.0.1:1", "\x00"} {
			conn, err := rueidis.Dialer(opt)(ctx, addr)
			require.Error(t, err)
			require.Nil(t, conn)
		}
	}
}
