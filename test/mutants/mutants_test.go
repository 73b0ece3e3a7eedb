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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checkout makes a repository with a module of one package: a sum, and tests of
// it of every kind.
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

func TestHangs(t *testing.T) {
	for Sum(2, 3) != 5 {
		select {}
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

// bug is a mutant of the sum.
func bug(name, change string, tests ...string) mutant {
	m := mutant{name: name, file: "sum/sum.go", old: "\treturn a + b\n", new: "\treturn " + change + "\n"}
	for _, test := range tests {
		m.red = append(m.red, catcher{"sum", test})
	}
	return m
}

// try runs a campaign and returns its table, without the seconds.
func try(t *testing.T, mutants ...mutant) (table string, err error) {
	t.Helper()
	testlevel.All(t, "compiles a program for each mutant")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var out bytes.Buffer
	c := &campaign{root: checkout(t), workers: 2, out: &out, log: t.Output()}
	err = c.run(t.Context(), mutants)
	left, globErr := filepath.Glob(filepath.Join(tmp, "mutants-*"))
	require.NoError(t, globErr)
	require.Empty(t, left, "the copies are removed")
	return out.String(), err
}

// line returns the words of the table's line about a mutant.
func line(table, name string) string {
	for l := range strings.Lines(table) {
		if strings.HasPrefix(l, name+" ") {
			words := strings.Fields(l)
			return strings.Join(words[1:len(words)-1], " ")
		}
	}
	return ""
}

func TestEveryMutantThatIsCaughtMakesASuccess(t *testing.T) {
	table, err := try(t, bug("minus", "a - b", "TestSum"), bug("both", "a + b + 1", "TestSum", "TestZero"))
	require.NoError(t, err)
	require.Equal(t, "caught TestSum", line(table, "minus"))
	require.Equal(t, "caught TestSum and 1 more", line(table, "both"))
	require.Contains(t, table, "mutants: 2 caught, 0 survived, 0 crashed, 0 errors")
}

func TestAMutantThatCrashesIsNotCaught(t *testing.T) {
	table, err := try(t, bug("minus", "a - b", "TestSum"), bug("dies", "a * b", "TestDies"),
		bug("also", "a - b", "TestSum", "TestDies"), bug("green", "a - b", "TestZero", "TestDies"))
	require.ErrorContains(t, err, "not every mutant was caught")
	require.Equal(t, "caught TestSum", line(table, "minus"))
	require.Equal(t, "CRASHED TestDies (crashed)", line(table, "dies"))
	require.Equal(t, "CRASHED TestDies (crashed)", line(table, "also"))
	require.Equal(t, "SURVIVED TestZero (green), TestDies (crashed)", line(table, "green"))
	require.Contains(t, table, "mutants: 1 caught, 1 survived, 2 crashed, 0 errors")
}

func TestAMutantIsCaughtFromAModuleOfItsOwn(t *testing.T) {
	m := bug("minus", "a - b")
	m.red = []catcher{{"nested", "TestNested"}}
	table, err := try(t, m)
	require.NoError(t, err)
	require.Equal(t, "caught TestNested", line(table, "minus"))
}

func TestWhatIsNotCaughtFails(t *testing.T) {
	gone := bug("gone", "a - b", "TestSum")
	gone.old = "\treturn a - b\n"
	nowhere := bug("nowhere", "a - b", "TestSum")
	nowhere.file = "sum/product.go"
	table, err := try(t,
		bug("fine", "a - b", "TestSum"),
		bug("survivor", "a - b", "TestZero"),
		bug("half", "a - b", "TestSum", "TestZero"),
		bug("typo", "a - c", "TestSum"),
		gone, nowhere,
		bug("misnamed", "a - b", "TestSummary"),
		bug("skipped", "a - b", "TestSkipped"),
		bug("red", "a - b", "TestRed"),
	)
	require.Error(t, err)
	for name, want := range map[string]string{
		"fine":     "caught TestSum",
		"survivor": "SURVIVED TestZero (green)",
		"half":     "SURVIVED TestZero (green)",
		"typo":     "ERROR",
		"gone":     "ERROR",
		"nowhere":  "ERROR",
		"misnamed": "ERROR",
		"skipped":  "ERROR",
		"red":      "ERROR",
	} {
		assert.Equal(t, want, line(table, name), name)
	}
	require.Contains(t, table, "undefined: c")
	require.Contains(t, table, "occurs 0 times in sum/sum.go")
	require.Contains(t, table, "mutants: 1 caught, 2 survived, 0 crashed, 6 errors")
	require.Greater(t, strings.Index(table, "survivor"), strings.Index(table, "red "), "what was not caught ends the table")
}

func TestInterruptedCampaignCleansUpAndFails(t *testing.T) {
	testlevel.All(t, "compiles a program")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	c := &campaign{root: checkout(t), workers: 1, out: &out, log: endsWith(cancel)}
	hangs := bug("second", "a - b", "TestHangs") // while this one hangs, or before
	err := c.run(ctx, []mutant{bug("first", "a - b", "TestSum"), hangs})
	require.ErrorContains(t, err, "interrupted")
	require.Empty(t, out.String())
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	for _, entry := range left {
		require.False(t, strings.HasPrefix(entry.Name(), "mutants-"), entry.Name())
	}
}

// endsWith cancels at the first line of the log.
type endsWith context.CancelFunc

// Write is part of io.Writer.
func (e endsWith) Write(line []byte) (int, error) {
	e()
	return len(line), nil
}

func TestRunsAreJudgedByTheTestThatWasAskedFor(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]colour{
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n":                                                                                green,
		"=== RUN   TestA\n    --- SKIP: TestA/one (0.00s)\n--- PASS: TestA (0.00s)\n":                                                     green,
		"=== RUN   TestA\npanic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n":                                             hung,
		"=== RUN   TestA\nERR Error compiling script (new function): :16: WRONGTYPE\nPASS\n":                                              green,
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\nredistest: goroutines left behind\nexit red\n":                                         red,
		"=== RUN   TestA\n    a_test.go:3: got panic: of a program\n--- FAIL: TestA (0.00s)\nexit red\n":                                  red,
		"=== RUN   TestA\n--- FAIL: TestA (0.00s)\npanic: nil pointer [recovered, repanicked]\nexit red\n":                                crashed,
		"=== RUN   TestA\n    a_test.go:3: \n        \tError Trace:\ta_test.go:3\npanic: nil pointer [recovered, repanicked]\nexit red\n": red,
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

func TestListsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	l, err := readLists(fstest.MapFS{"sums.txt": {Data: []byte(twoEntries)}})
	require.NoError(t, err)
	require.Equal(t, []mutant{{
		name: "sums/sums nothing", at: "sums.txt:3", file: "sum/sum.go",
		old: "func Sum(a, b int) int {\n\treturn a + b\n}\n",
		new: "func Sum(a, b int) int {\n\treturn 0\n}\n",
		red: []catcher{{"sum", "TestSum"}, {"sum", "TestZero"}, {".", "TestAll"}},
	}}, l.mutants)
}

func TestListsWithMistakesAreRefused(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"no test":     "mutant a\nfile b\n-x\n",
		"no file":     "mutant a\nred . T\n-x\n",
		"no name":     "file b\nred . T\n-x\n",
		"no change":   "mutant a\nfile b\nred . T\n x\n",
		"no place":    "mutant a\nfile b\nred . T\n+x\n",
		"other words": "mutant a\nfiles b\nred . T\n-x\n",
		"twice":       "mutant a\nfile b\nred . T\n-x\n\nmutant a\nfile b\nred . T\n-y\n",
	} {
		_, err := readLists(fstest.MapFS{"list.txt": {Data: []byte(text)}})
		require.Error(t, err, what)
	}
}

func TestAMutantAppliesToWholeLinesThatOccurOnce(t *testing.T) {
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

func TestNoMutantIsBegunAfterTheLimit(t *testing.T) {
	var out bytes.Buffer
	c := &campaign{root: checkout(t), workers: 1, out: &out, log: t.Output(), limit: time.Nanosecond}
	require.NoError(t, c.run(t.Context(), []mutant{bug("minus", "a - b", "TestSum")}))
	require.NotContains(t, out.String(), "minus")
	require.Contains(t, out.String(), "mutants: 0 caught, 0 survived, 0 crashed, 0 errors, 1 not run within the limit")
}

func TestChangedFilesAreThoseThatDifferFromTheRevision(t *testing.T) {
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
