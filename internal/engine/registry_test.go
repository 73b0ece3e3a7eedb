package engine

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRegistrySharesAValueUntilItsLastUserLeaves(t *testing.T) {
	t.Parallel()
	var r Registry[string, int]
	made := 0
	next := func() int { made++; return made }
	require.Equal(t, 1, r.Join("a", next))
	require.Equal(t, 1, r.Join("a", next), "shared")
	require.Equal(t, 2, r.Join("b", next))
	r.Leave("a")
	require.Equal(t, 1, r.Join("a", next), "one still uses it")
	r.Leave("a")
	r.Leave("a")
	require.Equal(t, 3, r.Join("a", next), "forgotten")
	r.Leave("a")
	r.Leave("b")
	require.Empty(t, r.byKey)
	r.Leave("a") // once too often
	require.Empty(t, r.byKey)
}

func TestRegistryMakesOneValueForAllThatJoinAtOnce(t *testing.T) {
	t.Parallel()
	var r Registry[string, *int]
	made := 0 // guarded by the registry
	var wg sync.WaitGroup
	values := make([]*int, 50)
	for i := range values {
		wg.Go(func() { values[i] = r.Join("a", func() *int { made++; return new(int) }) })
	}
	wg.Wait()
	require.Equal(t, 1, made)
	for _, v := range values {
		require.Same(t, values[0], v)
		r.Leave("a")
	}
	require.Empty(t, r.byKey)
}
