package luasrc

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// undeclaring are the scripts that use keys of holds, which the caller cannot declare.
var undeclaring = []*transport.Script{
	ReadAcquire, ReadReenter, ReadRelease, ReadReleaseShared, ReadRenew, WriteRelease, WriteReleaseShared,
	ReadWriteInspect, UndeclaredKey,
}

func TestScriptsDeclareTheirKeys(t *testing.T) {
	t.Parallel()
	s := newQuietStage(t, redistest.Start(t))
	strict := map[*transport.Script]*transport.Script{}
	for _, script := range all {
		strict[script] = transport.NewScript("strict", redistest.StrictKeys+script.Text())
	}
	s.instead = maps.Clone(strict)
	for _, script := range undeclaring {
		delete(s.instead, script)
	}
	for _, sc := range slices.Concat(scenarios, allScenarios, fencedScenarios, readWriteScenarios, latchScenarios, semaphoreScenarios, foreignScenarios) {
		require.NoError(t, s.play(sc))
	}
	for _, story := range slices.Concat(fairStories, fairLong) {
		require.NoError(t, s.tellFair(story))
	}
	for _, script := range all {
		if with := s.instead[script]; with != nil {
			assert.NotEmpty(t, s.known[with.Text()], "%s was not run", script.Name())
		}
	}
	for _, script := range undeclaring {
		s.instead = map[*transport.Script]*transport.Script{script: strict[script]}
		refused := slices.ContainsFunc(append(readWriteScenarios, scenario{"undeclared", undeclaredKey}), func(sc scenario) bool {
			err := s.play(sc)
			return err != nil && strings.Contains(err.Error(), "undeclared key")
		})
		require.True(t, refused, "%s uses declared keys only", script.Name())
	}
}

func undeclaredKey(l string) []vector {
	return []vector{vector{script: UndeclaredKey, keys: []string{l}}.gives(int64(-2), "", nothing)}
}

func TestScriptsWithUndeclaredKeysHaveDragonflysFlag(t *testing.T) {
	t.Parallel()
	const flag = "--!df flags=allow-undeclared-keys\n"
	for _, script := range all {
		require.Equal(t, slices.Contains(undeclaring, script), strings.HasPrefix(script.Text(), flag), script.Name())
	}
}
