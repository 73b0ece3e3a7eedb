package testlevel_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// skipped is a test that notes why it was skipped.
type skipped struct {
	testing.TB
	why string
}

func (s *skipped) Helper()          {}
func (s *skipped) Skip(args ...any) { s.why += args[0].(string) }

func TestWhatIsLeftOutRunsWhereAllTestsDo(t *testing.T) {
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

func TestAPartIsEveryStepthAndNeverEmpty(t *testing.T) {
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

func TestALevelThatDoesNotExistIsNotTakenForLess(t *testing.T) {
	t.Setenv(testlevel.Env, "al")
	require.Panics(t, func() { testlevel.Rounds(1, 2) })
}

// slow is set for the process in which a test has no time left.
const slow = "REDLATCH_DRAWN_SLOWLY"

func TestNoSequenceIsLeftOutWhenTimeRunsOut(t *testing.T) {
	if os.Getenv(slow) != "" {
		rapid.Check(testlevel.Drawn{T: t}, func(*rapid.T) { time.Sleep(50 * time.Millisecond) })
		return
	}
	testlevel.All(t, "it waits for two seconds until a test has no time left")
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=2s", "-rapid.checks=1000")
	cmd.Env = append(os.Environ(), slow+"=1")
	said, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", said)
	assert.Contains(t, string(said), "test timed out")
}

func TestEveryTestThatDrawsIsDrawn(t *testing.T) {
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
