package compat

import (
	"maps"
	"slices"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// While a slot is being migrated, the keys of a lock may be on two nodes. A script must then behave as usual or have no
// effect.
func TestScriptsAreAtomicDuringSlotMigration(t *testing.T) {
	testlevel.All(t, "a cluster, and each vector with each of its keys moved")
	testlevel.NoRace(t, testlevel.OneGoroutine)
	t.Parallel()
	masters := map[string]redis.Conn{}
	for _, s := range redistest.StartCluster(t, 2, 0).Nodes() {
		masters[s.Addr()] = s.Dial(t)
	}
	m, err := oracle.NewMoving(masters)
	require.NoError(t, err)
	for _, kind := range oracle.Kinds {
		for _, way := range oracle.Ways {
			ran, refused := 0, 0
			for _, v := range loadCorpus(t, kind).Vectors() {
				if v.Step.Op.Ours == nil {
					continue
				}
				r, f := requireAllOrNothing(t, m, way.Ours, v)
				ran, refused = ran+r, refused+f
			}
			t.Logf("%s, %s: run %d times, refused %d times", kind.Name, way.Name, ran, refused)
			require.Positive(t, ran)
			require.Positive(t, refused)
		}
	}
}

func requireAllOrNothing(t *testing.T, m *oracle.Moving, ours oracle.Ours, v oracle.Vector) (ran, refused int) {
	t.Helper()
	before, ok, err := m.Local(ours, v)
	require.NoError(t, err)
	if !ok {
		return 0, 0
	}
	want, err := m.Play(ours, v.Step, before)
	require.NoError(t, err, "%s %s", v.Operation, v.Does)
	keys := slices.Sorted(maps.Keys(before))
	sets := [][]string{nil, keys}
	for _, key := range keys {
		sets = append(sets, []string{key})
	}
	for _, moved := range sets {
		got, err := m.PlayMoving(ours, v.Step, before, moved)
		if !assert.NoError(t, err, "%s %s, with %q moved", v.Operation, v.Does, moved) {
			continue
		}
		if got.Refused() {
			refused++
			assert.NoError(t, oracle.Ran{Reply: got.Reply, After: before}.Same(got), "%s %s, with %q moved, refused",
				v.Operation, v.Does, moved)
			continue
		}
		ran++
		assert.NoError(t, want.Same(got), "%s %s, with %q moved", v.Operation, v.Does, moved)
	}
	return ran, refused
}
