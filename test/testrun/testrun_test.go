package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// said parses output of go test. Each line is given as an action, a package, a test and its output.
func said(t *testing.T, lines ...[4]string) (*outcome, string) {
	t.Helper()
	var in, out bytes.Buffer
	for _, l := range lines {
		line, err := json.Marshal(event{Action: l[0], Package: l[1], Test: l[2], Output: l[3]})
		require.NoError(t, err)
		in.Write(line)
	}
	o := newOutcome(&out)
	require.NoError(t, o.read(&in))
	return o, out.String()
}

func TestOutputShowsFailuresAndPackages(t *testing.T) {
	t.Parallel()
	o, out := said(t,
		[4]string{"output", "p", "TestA", "what A said\n"}, [4]string{"pass", "p", "TestA"},
		[4]string{"output", "p", "TestB", "what B said\n"}, [4]string{"fail", "p", "TestB"},
		[4]string{"output", "p", "TestC", "panic: C\n"},
		[4]string{"output", "p", "", "FAIL\tp\t0.1s\n"}, [4]string{"fail", "p"},
		[4]string{"output", "q", "", "PASS\n"}, [4]string{"output", "q", "", "ok  \tq\t0.1s\n"}, [4]string{"pass", "q"},
	)
	assert.Equal(t, "what B said\nFAIL\tp\t0.1s\npanic: C\nok  \tq\t0.1s\n", out)
	assert.Equal(t, []string{"p TestB"}, o.failed)
	assert.Len(t, o.passed, 1)
}

func TestFailuresRepeatedAtEnd(t *testing.T) {
	t.Parallel()
	var lines [][4]string
	for _, name := range []string{"TestA/part", "TestA", "TestB"} {
		lines = append(lines, [4]string{"output", "p", name, "=== RUN   " + name + "\n"})
		for i := range 20 {
			lines = append(lines, [4]string{"output", "p", name, fmt.Sprintf("%s %d\n", name, i)})
		}
		lines = append(lines, [4]string{"fail", "p", name})
	}
	o, _ := said(t, lines...)
	assert.Equal(t, 1, strings.Count(o.failures(), "Failed: p TestA/part\nTestA/part 0\n"))
	assert.Equal(t, 2, strings.Count(o.failures(), "Failed:"), o.failures())
	assert.Contains(t, o.failures(), "TestB 11\n")
	assert.NotContains(t, o.failures(), "TestB 12\n")
}

// The goroutine dump after a timeout shows where a test hangs.
func TestPanicAfterPassIsPrinted(t *testing.T) {
	t.Parallel()
	_, out := said(t,
		[4]string{"output", "p", "TestHangs", "=== RUN   TestHangs\n"},
		[4]string{"output", "p", "TestA", "--- PASS: TestA (0.00s)\n"},
		[4]string{"output", "p", "TestA", "panic: test timed out after 3s\n"}, [4]string{"output", "p", "TestA", "goroutine 1:\n"},
		[4]string{"pass", "p", "TestA"}, [4]string{"fail", "p"},
	)
	assert.Equal(t, "panic: test timed out after 3s\ngoroutine 1:\n=== RUN   TestHangs\n", out)
}

func TestSkipsGroupedByReason(t *testing.T) {
	t.Parallel()
	var lines [][4]string
	for i := range 6 {
		name := fmt.Sprintf("Test%d", i)
		lines = append(lines, [4]string{"output", "x/p", name, "    p_test.go:12: a cluster\n"},
			[4]string{"output", "x/p", name, "--- SKIP: " + name + " (0.00s)\n"}, [4]string{"skip", "x/p", name})
	}
	o, _ := said(t, append(lines, [4]string{"skip", "x/q", "TestSilent"})...)
	assert.Equal(t, `
Skipped, and why:
  a cluster
      p Test0
      p Test1
      p Test2
      p Test3
      and 2 more
  no reason
      q TestSilent
`, o.skips())
}

func TestRandomDrawsUseOneSeedUnlessSet(t *testing.T) {
	t.Setenv("RAPID_SEED", "")
	require.Contains(t, (&run{}).env(), "RAPID_SEED=1")
	t.Setenv("RAPID_SEED", "0")
	env := (&run{}).env()
	require.Contains(t, env, "RAPID_SEED=0")
	require.NotContains(t, env, "RAPID_SEED=1")
}

const module = `package p

import (
	"os"
	"testing"
)

func TestLeftOut(t *testing.T) {
	if os.Getenv("REDLATCH_TEST") != "all" || os.Getenv("FORGOTTEN") != "" {
		t.Skip("` + testlevel.Left + `a cluster")
	}
}

func TestCounted(t *testing.T) {
	if race || os.Getenv("NEVER") != "" {
		t.Skip("` + testlevel.NotWithRace + `bytes")
	}
}

func TestPart(t *testing.T) {
	t.Run("other", func(t *testing.T) {
		if !race {
			t.Error("once more")
		}
	})
	t.Run("a (part)", func(t *testing.T) {
		if race {
			t.Skip("` + testlevel.NotWithRace + `one goroutine")
		}
	})
}
`

func inModule(t *testing.T, r *run) error {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module p\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(module), 0o600))
	for file, text := range map[string]string{"race": "//go:build race\npackage p\nconst race = true", "norace": "//go:build !race\npackage p\nconst race = false"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file+"_test.go"), []byte(text), 0o600))
	}
	t.Chdir(dir)
	r.args = []string{"-count=1", "-vet=off"}
	return r.tests(t.Context(), []string{"."})
}

func TestLeftOutTestFailsFullRun(t *testing.T) {
	testlevel.All(t, "it compiles and runs go test once more")
	var out strings.Builder
	_ = inModule(t, &run{out: &out}) // without the race detector, TestPart fails
	assert.Contains(t, out.String(), "  left to make test-all: a cluster\n      p TestLeftOut\n")
	require.NoError(t, inModule(t, &run{out: io.Discard, all: true}))
	t.Setenv("FORGOTTEN", "1")
	require.ErrorContains(t, inModule(t, &run{out: io.Discard, all: true}), "1 tests were left out")
}

func TestRaceSensitiveTestsRunWithoutDetector(t *testing.T) {
	testlevel.All(t, "it compiles and runs go test once more")
	var out strings.Builder
	require.ErrorContains(t, inModule(t, &run{out: &out}), "exit status 1")
	assert.Contains(t, out.String(), "2 tests passed, 2 failed, 1 were skipped")
	out.Reset()
	require.NoError(t, inModule(t, &run{out: &out, all: true}))
	assert.Contains(t, out.String(), "Without the race detector:\n")
	assert.Contains(t, out.String(), "5 tests passed, 0 failed, 0 were skipped")
	t.Setenv("NEVER", "1")
	require.ErrorContains(t, inModule(t, &run{out: io.Discard, all: true}), "1 tests were skipped with the race detector and without")
}
