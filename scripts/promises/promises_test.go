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
	text, err := render(checkout("U1 | TestLoss\nTLS | TestLoss | the margin is 1\n"))
	require.NoError(t, err)
	require.Contains(t, text, "\n| U1 | `TestLoss` in a, b | lock/margin 0 |  |\n")
	require.Contains(t, text, "\n| TLS | `TestLoss` in a, b | lock/margin 0 | the margin is 1 |\n")
	require.Contains(t, text, "\n| – | `TestOther` in a | lock/margin 0 |  |\n", "a planted bug needs no promise")
}

func TestRowsThatHoldNothingAreRefused(t *testing.T) {
	t.Parallel()
	for _, promises := range []string{
		"U1 | TestGone | the margin is 0\n", "U1 |  | the margin is 0\n", "U1\n", "U1 | TestLoss | a | b\n", "",
	} {
		_, err := render(checkout(promises))
		require.Error(t, err, promises)
	}
	_, err := render(checkout("TLS | TestGone | the certificate is not looked at\n"))
	require.ErrorContains(t, err, "TLS: there is no TestGone")
	files := checkout("U1 | TestLoss | the margin is 0\n")
	delete(files, "a/a_test.go")
	_, err = render(files)
	require.ErrorContains(t, err, "there is no TestOther")
}

func TestAPromiseIsBrokenByAPlantedBugOrAChange(t *testing.T) {
	t.Parallel()
	for promise, refused := range map[string]string{
		"TLS | TestAlone | the certificate is not looked at": "",
		"TLS | TestAlone":                          "neither a planted bug nor a change",
		"TLS | TestAlone | not planted yet":        "is no change",
		"U1 | TestLoss | its bug is not yet there": "is no change",
		"TLS | TestAlone | later":                  "is no change",
		"U1, U2 | TestAlone | margin 0":            "no planted bug turns TestAlone red",
		"fair, U26 | TestAlone | margin 0":         "no planted bug turns TestAlone red",
		"Unlock | TestAlone TestAlone2 | twice":    "no planted bug turns TestAlone or TestAlone2 red",
		"Unlock | TestAlone TestLoss":              "",
	} {
		files := checkout(promise + "\n")
		files["c/c_test.go"] = &fstest.MapFile{Data: []byte("package c\nfunc TestAlone(t *testing.T) {}\nfunc TestAlone2(t *testing.T) {}\n")}
		_, err := render(files)
		if refused == "" {
			require.NoError(t, err, promise)
		} else {
			require.ErrorContains(t, err, refused, promise)
		}
	}
}
