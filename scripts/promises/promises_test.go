package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func checkout(promises string) fstest.MapFS {
	return fstest.MapFS{
		source:                  {Data: []byte("# rows\n" + promises)},
		"test/mutants/lock.txt": {Data: []byte("mutant margin 0\nfile   a.go\nred    a TestLoss TestOther\n-\tred herring\n+\tb\n")},
		"a/a_test.go":           {Data: []byte("package a\nfunc TestLoss(t *testing.T) {}\nfunc TestOther(t *testing.T) {}\n")},
		"b/b_test.go":           {Data: []byte("package b\nfunc TestLoss(t *testing.T) {}\n")},
	}
}

func TestARowHasTestsWithTheirPackagesAndPlantedBugs(t *testing.T) {
	t.Parallel()
	text, err := render(checkout("U1 | TestLoss | the margin is 0\n"))
	require.NoError(t, err)
	require.Contains(t, text, "\n| U1 | `TestLoss` in a, b | the margin is 0 | lock/margin 0 |\n")
	require.Contains(t, text, "\n| – | `TestOther` in a | – | lock/margin 0 |\n", "a planted bug needs no promise")
}

func TestRowsThatHoldNothingAreRefused(t *testing.T) {
	t.Parallel()
	for _, promises := range []string{
		"U1 | TestGone | the margin is 0\n", "U1 |  | the margin is 0\n", "U1 | TestLoss | \n", "U1 | TestLoss\n", "",
	} {
		_, err := render(checkout(promises))
		require.Error(t, err, promises)
	}
	files := checkout("U1 | TestLoss | the margin is 0\n")
	delete(files, "a/a_test.go")
	_, err := render(files)
	require.ErrorContains(t, err, "there is no TestOther")
}
