package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemoWorkerRefusesToBeStartedByHand(t *testing.T) {
	t.Parallel()
	p := start(t, nobody(t), "__demo-worker")
	require.NoError(t, p.stdin.Close())
	require.Empty(t, p.rest())
	require.Equal(t, 1, p.code())
	require.Contains(t, p.stderr.String(), "not by hand")
}
