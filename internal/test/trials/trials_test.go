package trials

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestArgsOfAProcessAreThoseOfItsFleet(t *testing.T) {
	t.Parallel()
	want := Args{URL: "redis://127.0.0.1:1", Name: "a", Other: true, file: "/b"}
	got, ok := parseArgs(want.String())
	assert.True(t, ok)
	assert.Equal(t, want, got)
	_, ok = parseArgs("")
	assert.False(t, ok)
}

func TestStepsAreReadByWholeLines(t *testing.T) {
	t.Parallel()
	one, two := step{1, 7, 1}, step{2, 7, 1}
	steps, rest, err := parseSteps(one.String() + "\n" + two.String() + "\n3 7")
	require.NoError(t, err)
	assert.Equal(t, []step{one, two}, steps)
	assert.Equal(t, "3 7", rest)
	_, _, err = parseSteps("3 7\n")
	require.Error(t, err)
}

func TestRunsThatAreTogetherAreFound(t *testing.T) {
	t.Parallel()
	one := []step{{10, 7, 1}, {20, 7, 1}}
	all, err := runs(append(one, step{40, 7, 2}, step{30, 8, 1})) // in the order of the file
	require.NoError(t, err)
	require.Len(t, all, 3)
	assert.EqualValues(t, 10, all[0].First)
	assert.EqualValues(t, 20, all[0].Last)
	assert.EqualValues(t, 30, all[1].First)
	_, err = runs(append(one, step{15, 8, 1}))
	require.ErrorContains(t, err, "run 1 of process 8 began before run 1 of process 7 had ended")
	_, err = runs(append(one, step{15, 8, 1}, step{25, 8, 1}))
	require.Error(t, err)
}
