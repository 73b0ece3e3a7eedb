package testlevel_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// skipped is a test that records why it was skipped.
type skipped struct {
	testing.TB
	why string
}

func (s *skipped) Helper()          {}
func (s *skipped) Skip(args ...any) { s.why += args[0].(string) }

func TestSkippedTestsRunAtFullLevel(t *testing.T) {
	t.Setenv(testlevel.Env, "")
	left := &skipped{}
	testlevel.All(left, "a cluster")
	assert.Contains(t, left.why, testlevel.Left+"a cluster")
	assert.Equal(t, 3, testlevel.Rounds(3, 100))

	t.Setenv(testlevel.Env, "all")
	run := &skipped{}
	testlevel.All(run, "a cluster")
	if testing.Short() {
		assert.Equal(t, "-short: a cluster", run.why)
	} else {
		assert.Empty(t, run.why)
	}
	assert.Equal(t, 100, testlevel.Rounds(3, 100))
}

func TestPartTakesEveryNthAndIsNeverEmpty(t *testing.T) {
	all := []int{1, 2, 3, 4, 5}
	t.Setenv(testlevel.Env, "")
	assert.Equal(t, []int{1, 4}, testlevel.Part(all, 3, ""))
	assert.Equal(t, []int{2, 5}, testlevel.Part(all, 3, "name"))
	assert.Equal(t, []int{3}, testlevel.Part(all, 3, "12345678"))
	assert.Equal(t, []int{3}, testlevel.Part(all, len(all), "123456789012"))
	for length := range 10 {
		assert.Equal(t, []int{1}, testlevel.Part([]int{1}, 3, strings.Repeat("x", length)))
	}
	assert.Empty(t, testlevel.Part([]int{}, 0, "name"))
	t.Setenv(testlevel.Env, "all")
	assert.Equal(t, all, testlevel.Part(all, 3, "name"))
}

func TestUnknownLevelIsRejected(t *testing.T) {
	t.Setenv(testlevel.Env, "al")
	require.Panics(t, func() { testlevel.Rounds(1, 2) })
}

// In a bubble, rapid panics when it calls Deadline on a *testing.T.
func TestDrawnHidesDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		drawn := 0
		rapid.Check(testlevel.Drawn{T: t}, func(*rapid.T) {
			drawn++
			time.Sleep(time.Minute)
		})
		require.GreaterOrEqual(t, drawn, 20)
	})
}

func TestEveryRapidTestUsesDrawn(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	drawn := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		call := []byte("rapid." + "Check(")
		all, right := bytes.Count(text, call), bytes.Count(text, append(call, "testlevel.Drawn{T: t}, "...))
		assert.Equal(t, all, right, "%s draws from a bare *testing.T", path)
		drawn += right
		return err
	}))
	assert.Greater(t, drawn, 5)
}
