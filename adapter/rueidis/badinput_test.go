package rueidis_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	lib "github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/adapter/rueidis"
	"github.com/redlatch/redlatch/internal/test/exported"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// badInput are the exported functions, and what tries each with values that its types
// permit and nobody wants. Options are tried with New.
var badInput = map[string]func(t *testing.T){
	"rueidis.New":        badClients,
	"rueidis.WithLogger": func(t *testing.T) { t.Helper(); options(t, rueidis.WithLogger, nil, nil, new(slog.Logger)) },
	"rueidis.WithReplyLimit": func(t *testing.T) {
		t.Helper()
		options(t, rueidis.WithReplyLimit,
			[]time.Duration{0, -1, 1, 500*time.Millisecond - 1, time.Hour + 1, math.MaxInt64, math.MinInt64}, 500*time.Millisecond, time.Hour)
	},
	"rueidis.WithDialTimeout": func(t *testing.T) {
		t.Helper()
		options(t, rueidis.WithDialTimeout, []time.Duration{0, -1, math.MinInt64}, time.Second, math.MaxInt64)
	},
	"rueidis.WithShardedPubSub": func(t *testing.T) {
		t.Helper()
		options(t, rueidis.WithShardedPubSub,
			[]transport.Sharding{transport.ShardingOff + 1, 255}, transport.ShardingOn, transport.ShardingOff)
	},
	"rueidis.WithClientOption": func(t *testing.T) {
		t.Helper()
		options(t, rueidis.WithClientOption, nil, lib.ClientOption{}, lib.ClientOption{PipelineMultiplex: 255, RingScaleEachConn: -1})
	},
	"rueidis.WithServerClient": func(t *testing.T) {
		t.Helper()
		options(t, rueidis.WithServerClient, nil, nil, noClient)
		noClientIsAnError(t)
	},
}

func noClient(context.Context, string) (lib.Client, error) { return nil, nil } //nolint:nilnil // the mistake

func TestExportedFunctionsStandBadInput(t *testing.T) {
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

// options tries an option with values that are refused, and with others, which do no harm.
func options[T any](t *testing.T, option func(T) rueidis.Option, refused []T, harmless ...T) {
	t.Helper()
	client := clientOf(t, plainly(redistest.Shared(t).Addr()))
	for i, value := range refused {
		tr, err := rueidis.New(t.Context(), client, nil, option(value), nil)
		assert.ErrorContains(t, err, "rueidis: ", "value %d", i)
		assert.Less(t, len(fmt.Sprint(err)), 200)
		assert.Nil(t, tr)
	}
	for i, value := range harmless {
		tr, err := rueidis.New(t.Context(), client, nil, option(value), nil)
		require.NoError(t, err, "value %d", i)
		reply, err := do(tr, "ECHO", "it works")
		assert.NoError(t, err, "value %d", i)
		assert.Equal(t, []byte("it works"), reply)
		assert.NoError(t, tr.Close())
	}
}

// badClients are of no use, or of none any more.
func badClients(t *testing.T) {
	t.Helper()
	works := clientOf(t, plainly(redistest.Shared(t).Addr()))
	require.PanicsWithValue(t, "rueidis: nil Context", func() { _, _ = rueidis.New(nil, works) }) //nolint:staticcheck // the mistake
	for _, c := range []lib.Client{nil, ofNoMode{works}} {
		tr, err := rueidis.New(t.Context(), c)
		require.ErrorContains(t, err, "rueidis: ")
		require.Nil(t, tr)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tr, err := rueidis.New(ended, works)
	require.NoError(t, err, "nothing is asked")
	_, err = do(tr, "GET", "key")
	require.NoError(t, err)
	require.NoError(t, tr.Close())

	closed, err := lib.NewClient(plainly(redistest.Shared(t).Addr()))
	require.NoError(t, err)
	closed.Close()
	for _, c := range []lib.Client{closed, inACluster{closed}} {
		tr, err := rueidis.New(t.Context(), c, rueidis.WithShardedPubSub(transport.ShardingOn))
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

// noClientIsAnError asks a replica over a function that gives neither a client nor an
// error.
func noClientIsAnError(t *testing.T) {
	t.Helper()
	master := redistest.Start(t)
	redistest.StartReplica(t, master)
	tr := opened(t, clientOf(t, plainly(master.Addr())), rueidis.WithServerClient(noClient))
	_, err := tr.(transport.Counter).Listeners(t.Context(), "channel")
	require.ErrorContains(t, err, "no client")
}
