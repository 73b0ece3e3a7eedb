package testlevel_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
