package trials

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRunsGroupsStepsAndRejectsOverlap(t *testing.T) {
	t.Parallel()
	one := []step{{10, 7, 1}, {20, 7, 1}}
	all, err := runs(append(one, step{40, 7, 2}, step{30, 8, 1})) // the order in which the file lists them
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
