package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

const before = `package sum

func Max(a, b int) int {
	if a > b {
		return a
	}
	return b
}
`

const after = `package sum

import "errors"

var errSmall = errors.New("small")

func Max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func Count(n *int, by int) error {
	if by < 1 {
		return errSmall
	}
	*n += by
	return nil
}
`

const afterTest = `package sum

import "testing"

func TestCount(t *testing.T) {
	n := 1
	if err := Count(&n, 2); err != nil || n != 3 {
		t.Error(n, err)
	}
	if err := Count(&n, -1); err == nil || n != 3 {
		t.Error(n, err)
	}
}
`

// The bound is only tested at -1 and 2, so the mutant "by <= 1" survives.
func TestGenerateMutatesChangedLines(t *testing.T) {
	testlevel.All(t, "it compiles and runs go test for each mutant")
	root, file := t.TempDir(), "sum/sum.go"
	write := func(name, text string) {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("go.mod", "module example.com/sums\n\ngo 1.25.0\n")
	write(file, before)
	gitIn(t, root, "init", "-q")
	gitIn(t, root, "add", ".")
	gitIn(t, root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "before")
	write(file, after)
	write("sum/sum_test.go", afterTest)

	made, err := generate(t.Context(), root, "HEAD", nil)
	require.NoError(t, err)
	names := make([]string, 0, len(made))
	for _, m := range made {
		names = append(names, m.name)
		require.Equal(t, []catcher{{pkg: "sum"}}, m.red)
	}
	require.Equal(t, []string{
		file + ":15 not by < 1", file + ":15 <= in by < 1", file + ":16 return nil for errSmall", file + ":18 without *n += by",
	}, names)

	var out bytes.Buffer
	c := &campaign{root: root, out: &out, lenient: true}
	require.NoError(t, c.run(t.Context(), made))
	require.Contains(t, out.String(), "mutants: 3 caught, 0 hung, 1 survived, 0 crashed, 0 errors")
	require.Regexp(t, `(?m)^SURVIVED  sum/sum.go:15 <= in by < 1 \(`, out.String())
}
