package luasrc

import (
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

func allFragments(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("shared/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for i := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(paths[i]), ".lua")
	}
	return paths
}

var called = regexp.MustCompile(`\b(\w+)\(`)

func calledIn(text string, names []string) (found []string) {
	for _, m := range called.FindAllStringSubmatch(text, -1) {
		if slices.Contains(names, m[1]) && !slices.Contains(found, m[1]) {
			found = append(found, m[1])
		}
	}
	return found
}

func TestFilesListCalledFragments(t *testing.T) {
	t.Parallel()
	names := allFragments(t)
	for file := range all {
		text := source(t, file)
		require.ElementsMatch(t, calledIn(readContract(text).body, names), fragments(text), file)
	}
}

// A fragment is one local function, which has all that it needs from its arguments.
func TestFragmentsAreFunctionsWithHeaders(t *testing.T) {
	t.Parallel()
	names := allFragments(t)
	for _, name := range names {
		text, begin := source(t, path.Join("shared", name+".lua")), "local function "+name+"("
		require.True(t, strings.HasPrefix(text, "-- "), "%s has a header", name)
		body := readContract(text).body
		require.True(t, strings.HasPrefix(body, begin), name)
		require.True(t, strings.HasSuffix(body, "\nend\n"), name)
		require.ElementsMatch(t, calledIn(body[len(begin):], names), fragments(text), name)
		require.Equal(t, 1, strings.Count("\n"+body, "\nlocal "), "%s: one function", name)
		require.Equal(t, 1, strings.Count(body, "\nend\n"), "%s: one function", name)
		for _, word := range []string{"KEYS[", "ARGV", "--"} {
			require.NotContains(t, body, word, name)
		}
		users := 0
		for _, script := range all {
			n := strings.Count(script.Text(), begin)
			require.LessOrEqual(t, n, 1, "%s has %s twice", script.Name(), name)
			users += n
		}
		require.Greater(t, users, 1, "%s: a function of one script belongs into that script", name)
	}
}

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
	stories := fairStories
	if testlevel.IsAll() {
		stories = slices.Concat(fairStories, fairLong)
	}
	for _, story := range stories {
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

func TestScriptsWithUndeclaredKeysSetDragonflyFlag(t *testing.T) {
	t.Parallel()
	const flag = "--!df flags=allow-undeclared-keys\n"
	for _, script := range all {
		require.Equal(t, slices.Contains(undeclaring, script), strings.HasPrefix(script.Text(), flag), script.Name())
	}
}
