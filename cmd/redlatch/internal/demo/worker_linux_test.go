package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
)

func TestDemoWorkerRefusesToBeStartedByHand(t *testing.T) {
	t.Parallel()
	p := program.Start(t, program.NoServer(t), "__demo-worker")
	require.NoError(t, p.Stdin.Close())
	require.Empty(t, p.Rest())
	require.Equal(t, 1, p.Code())
	require.Contains(t, p.Stderr.String(), "not by hand")
}
