package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checkout creates a repository with one package, which contains the function Sum and tests of all kinds.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.com/sums\n\ngo 1.25.0\n",
		"sum/sum.go": "package sum\n\n// Sum adds.\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n",
		"sum/sum_test.go": `package sum

import "testing"

func TestSum(t *testing.T) {
	if Sum(2, 3) != 5 {
		t.Error("two and three")
	}
}

func TestZero(t *testing.T) {
	if Sum(0, 0) != 0 {
		t.Error("nothing and nothing")
	}
}

func TestDies(t *testing.T) {
	if Sum(2, 3) != 5 {
		done := make(chan bool)
		go func() { panic("not in the test") }()
		<-done
	}
}

func TestSkipped(t *testing.T) { t.Skip("no reason") }

func TestRed(t *testing.T) { t.Error("always") }
`,
		"nested/go.mod": "module example.com/nested\n\ngo 1.25.0\n\nrequire example.com/sums v0.0.0\n\nreplace example.com/sums => ../\n",
		"nested/nested_test.go": `package nested

import (
	"testing"

	"example.com/sums/sum"
)

func TestNested(t *testing.T) {
	if sum.Sum(2, 3) != 5 {
		t.Error("two and three")
	}
}
`,
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	gitIn(t, root, "init", "-q")
	return root
}

func gitIn(t *testing.T, root string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// bug returns a mutant of the function Sum.
func bug(name, change string, tests ...string) mutant {
	m := mutant{name: name, file: "sum/sum.go", old: "\treturn a + b\n", new: "\treturn " + change + "\n"}
	for _, test := range tests {
		m.red = append(m.red, catcher{"sum", test})
	}
	return m
}

// try runs a campaign and returns its output.
func try(t *testing.T, mutants ...mutant) (output string, err error) {
	t.Helper()
	testlevel.All(t, "compiles a program for each mutant")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var out bytes.Buffer
	c := &campaign{root: checkout(t), out: &out}
	err = c.run(t.Context(), mutants)
	left, globErr := filepath.Glob(filepath.Join(tmp, "mutants-*"))
	require.NoError(t, globErr)
	require.Empty(t, left, "the copies are removed")
	return out.String(), err
}

// line returns the line of the output that reports on a mutant, without its time.
func line(output, name string) string {
	for l := range strings.Lines(output) {
		words := strings.Fields(l)
		if len(words) > 3 && strings.Trim(words[1], ":,") == name {
			return strings.Join(append(words[:1], words[2:len(words)-2]...), " ")
		}
	}
	return ""
}

func TestCaughtMutantsSucceed(t *testing.T) {
	nested := bug("nested", "a - b")
	nested.red = []catcher{{"nested", "TestNested"}}
	output, err := try(t, bug("minus", "a - b", "TestSum"), bug("both", "a + b + 1", "TestSum", "TestZero"), nested)
	require.NoError(t, err)
	for _, name := range []string{"minus", "both", "nested"} {
		require.Equal(t, "caught", line(output, name), "of a module of its own, too")
	}
	require.Contains(t, output, "mutants: 3 caught, 0 hung, 0 survived, 0 crashed, 0 errors")
}

func TestSurvivingMutantFails(t *testing.T) {
	gone := bug("gone", "a - b", "TestSum")
	gone.old = "\treturn a - b\n"
	nowhere := bug("nowhere", "a - b", "TestSum")
	nowhere.file = "sum/product.go"
	output, err := try(t,
		bug("fine", "a - b", "TestSum"),
		bug("half", "a - b", "TestSum", "TestZero"),
		bug("dies", "a * b", "TestDies"),
		bug("also", "a - b", "TestSum", "TestDies"),
		bug("green", "a - b", "TestZero", "TestDies"),
		bug("typo", "a - c", "TestSum"),
		gone, nowhere,
		bug("misnamed", "a - b", "TestSummary"),
		bug("skipped", "a - b", "TestSkipped"),
		bug("red", "a - b", "TestRed"),
	)
	require.ErrorContains(t, err, "not every mutant was caught")
	for name, want := range map[string]string{
		"fine":  "caught",
		"half":  "SURVIVED SURVIVED: sum TestZero",
		"dies":  "CRASHED CRASHED: sum TestDies",
		"also":  "CRASHED CRASHED: sum TestDies",
		"green": "SURVIVED SURVIVED: sum TestZero, CRASHED: sum TestDies",
	} {
		require.Equal(t, want, line(output, name), name)
	}
	for _, name := range []string{"typo", "gone", "nowhere", "misnamed", "skipped", "red"} {
		require.Contains(t, output, "ERROR     "+name+": ")
	}
	require.Contains(t, output, "undefined: c")
	require.Contains(t, output, "occurs 0 times in sum/sum.go")
	require.Contains(t, output, "mutants: 1 caught, 0 hung, 2 survived, 2 crashed, 6 errors")
	_, end, _ := strings.Cut(output, "\n\n")
	require.NotContains(t, end, "caught    fine")
	require.Contains(t, end, "SURVIVED  half", "the output ends with what was not caught")
}

func TestInterruptedCampaignCleansUp(t *testing.T) {
	testlevel.All(t, "compiles a program")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &campaign{root: checkout(t), out: endsWith(cancel)}
	err := c.run(ctx, []mutant{bug("first", "a - b", "TestSum"), bug("second", "a * b", "TestSum")})
	require.ErrorContains(t, err, "interrupted")
	left, err := filepath.Glob(filepath.Join(tmp, "mutants-*"))
	require.NoError(t, err)
	require.Empty(t, left, "the copy is removed")
}

// endsWith cancels at the first line of the output.
type endsWith context.CancelFunc

func (e endsWith) Write(line []byte) (int, error) {
	e()
	return len(line), nil
}

func TestWorkshopKillsLeftoverProcesses(t *testing.T) {
	t.Parallel()
	w := &workshop{dir: filepath.Join(t.TempDir(), "src")}
	left := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000; true", filepath.Join(filepath.Dir(w.dir), "tmp"))
	require.NoError(t, left.Start())
	w.close()
	require.ErrorContains(t, left.Wait(), "killed")
}

func TestVerdictUsesRequestedTest(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]verdict{
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n":                                                                                survived,
		"=== RUN   TestA\n    --- SKIP: TestA/one (0.00s)\n--- PASS: TestA (0.00s)\n":                                                     survived,
		"=== RUN   TestA\npanic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\nexit red\n":                                   hung,
		"=== RUN   TestA\nERR Error compiling script (new function): :16: WRONGTYPE\nPASS\n":                                              survived,
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\nredistest: goroutines left behind\nexit red\n":                                         caught,
		"=== RUN   TestA\n    a_test.go:3: got panic: of a program\n--- FAIL: TestA (0.00s)\nexit red\n":                                  caught,
		"=== RUN   TestA\n--- FAIL: TestA (0.00s)\npanic: nil pointer [recovered, repanicked]\nexit red\n":                                crashed,
		"=== RUN   TestA\n    a_test.go:3: \n        \tError Trace:\ta_test.go:3\npanic: nil pointer [recovered, repanicked]\nexit red\n": caught,
		"=== RUN   TestA\n        \tError Trace:\ta_test.go:3\npanic: deadlock: main bubble goroutine has exited\nexit red\n":             caught,
		"=== RUN   TestA\nfatal error: concurrent map writes\nexit red\n":                                                                 crashed,
		"=== RUN   TestA\npanic: deadlock: main bubble goroutine has exited but blocked goroutines remain [recovered]\nexit red\n":        hung,
		"=== RUN   TestA\nfatal error: all goroutines are asleep - deadlock!\nexit red\n":                                                 hung,
	} {
		r := run{output: output, failed: strings.Contains(output, "exit red")}
		got, err := r.judge(catcher{"sum", "TestA"})
		require.NoError(t, err, output)
		require.Equal(t, want, got, output)
	}
	for _, output := range []string{
		"testing: warning: no tests to run\nPASS\n",
		"=== RUN   TestAB\n--- PASS: TestAB (0.00s)\n",
		"=== RUN   TestA\n--- SKIP: TestA (0.00s)\n",
		"=== RUN   TestA\nERR Error compiling script (new function): user_script:3: '=' expected\n--- FAIL: TestA (0.0s)\n",
	} {
		_, err := (&run{output: output, failed: true}).judge(catcher{"sum", "TestA"})
		require.Error(t, err, output)
	}
}

const twoEntries = `# About sums.

mutant sums nothing
file   sum/sum.go
red    sum TestSum TestZero
red    .   TestAll
 func Sum(a, b int) int {
-	return a + b
+	return 0
 }
`

func TestReadList(t *testing.T) {
	t.Parallel()
	l, err := readLists(fstest.MapFS{"sums.txt": {Data: []byte(twoEntries)}})
	require.NoError(t, err)
	require.Equal(t, []mutant{{
		name: "sums/sums nothing", file: "sum/sum.go",
		old: "func Sum(a, b int) int {\n\treturn a + b\n}\n",
		new: "func Sum(a, b int) int {\n\treturn 0\n}\n",
		red: []catcher{{"sum", "TestSum"}, {"sum", "TestZero"}, {".", "TestAll"}},
	}}, l)
}

func TestInvalidListIsRejected(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"no test":     "mutant a\nfile b\n-x\n",
		"no file":     "mutant a\nred . T\n-x\n",
		"no name":     "file b\nred . T\n-x\n",
		"no change":   "mutant a\nfile b\nred . T\n x\n",
		"no place":    "mutant a\nfile b\nred . T\n+x\n",
		"other words": "mutant a\nfiles b\nred . T\n-x\n",
	} {
		_, err := readLists(fstest.MapFS{"list.txt": {Data: []byte(text)}})
		require.Error(t, err, what)
	}
}

func TestMutantMatchesUniqueWholeLines(t *testing.T) {
	t.Parallel()
	m := mutant{file: "f", old: "b\n", new: "c\n"}
	for text, want := range map[string]string{
		"b\n":          "c\n",
		"a\nb\nd\n":    "a\nc\nd\n",
		"ab\nb\n b\n":  "ab\nc\n b\n",
		"a\n":          "",
		"b\nb\n":       "",
		"ab\nbc\n b\n": "",
	} {
		got, err := m.apply(text)
		require.Equal(t, want, got)
		require.Equal(t, want == "", err != nil, text)
	}
}

func TestLimitStopsNewMutants(t *testing.T) {
	var out bytes.Buffer
	c := &campaign{root: checkout(t), out: &out, limit: time.Nanosecond}
	require.NoError(t, c.run(t.Context(), []mutant{bug("minus", "a - b", "TestSum")}))
	require.NotContains(t, out.String(), "minus")
	require.Contains(t, out.String(), "mutants: 0 caught, 0 hung, 0 survived, 0 crashed, 0 errors, 1 not run within the limit")
}

func TestChangedFilesSinceRevision(t *testing.T) {
	root := checkout(t)
	gitIn(t, root, "add", "-A")
	gitIn(t, root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first")
	require.NoError(t, os.WriteFile(filepath.Join(root, "sum", "sum.go"), []byte("package sum\n"), 0o600))
	names, err := changed(t.Context(), root, "HEAD")
	require.NoError(t, err)
	require.Equal(t, []string{"sum/sum.go"}, names)
	_, err = changed(t.Context(), root, "no-such-revision")
	require.Error(t, err)
}
