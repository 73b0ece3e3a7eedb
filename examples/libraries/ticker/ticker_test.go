package ticker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/examples/libraries/internal/candidates"
	"github.com/redlatch/redlatch/examples/libraries/ticker"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestOneProcessRunsEachTick(t *testing.T) {
	t.Parallel()
	candidates.Takes(t, redistest.Start(t), func(did func()) func(context.Context) error {
		return ticker.Lead(100*time.Millisecond, func(context.Context) error {
			did()
			return nil
		})
	})
}

func TestErrorEndsLeadership(t *testing.T) {
	t.Parallel()
	failed := errors.New("the work has failed")
	require.ErrorIs(t, ticker.Lead(time.Millisecond, func(context.Context) error { return failed })(t.Context()), failed)
}
