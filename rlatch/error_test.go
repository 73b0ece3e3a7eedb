package rlatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
)

// A question changes nothing: there is no outcome that could be uncertain.
func TestAWaitThatEndsDuringItsFirstQuestionSaysSo(t *testing.T) {
	t.Parallel()
	_, p, l := behind(t)
	set(t, l, 1)
	p.Latency(redistest.ToClient, 500*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := l.Wait(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, redlatch.ErrUncertain)
	require.ErrorIs(t, err, rlatch.ErrNotOpen)
}
