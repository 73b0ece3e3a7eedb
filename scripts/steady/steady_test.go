package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/stolen"
)

// suite is a module whose tests do as their names say.
var suite = map[string]string{
	"go.mod": "module suite\n\ngo 1.25\n",
	"fine/fine_test.go": `package fine
import "testing"
func TestFine(t *testing.T) { t.Log("told to nobody") }
func TestUnlucky(t *testing.T) {}
`,
	"once/once_test.go": `package once
import ("os"; "testing")
func TestFailsOnce(t *testing.T) {
	t.Run("inner", func(t *testing.T) {
		if _, err := os.Stat("been"); err != nil {
			_ = os.WriteFile("been", nil, 0o600)
			t.Fatal("too late")
		}
	})
}
func TestFine(t *testing.T) {}
`,
	"second/second_test.go": `package second
import "testing"
var runs int
func TestFailsTheSecondTime(t *testing.T) { if runs++; runs != 3 { t.Fatal("too late") } }
`,
	"always/always_test.go": `package always
import "testing"
func TestFails(t *testing.T) { t.Fatal("too late") }
`,
	"races/races_test.go": `package races
import "testing"
func TestRaces(t *testing.T) { t.Fatal("WARNING: DATA RACE") }
`,
	"panics/panics_test.go": `package panics
import "testing"
func TestPanics(t *testing.T) { panic("oh") }
`,
	"killed/killed_test.go": `package killed
import ("fmt"; "os"; "testing"; "time")
func TestEnds(t *testing.T) {
	t.Parallel()
	t.Run("inner", func(t *testing.T) {
		t.Parallel()
		time.Sleep(time.Millisecond)
		fmt.Println("last words")
		os.Exit(2)
	})
}
func TestFine(t *testing.T) { t.Parallel() }
`,
	"leaks/leaks_test.go": `package leaks
import ("os"; "testing")
func TestMain(m *testing.M) { m.Run(); os.Exit(1) }
func TestFine(t *testing.T) {}
`,
	"hangs/hangs_test.go": `package hangs
import "testing"
func TestHangs(t *testing.T) { select {} }
`,
	"broken/broken_test.go": "package broken\nfunc TestBroken(t *testing.T) {}\n",
}

// on returns a steady that runs the suite while the host takes so much.
func on(t *testing.T, share float64) (*steady, *bytes.Buffer) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range suite {
		name = filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	out := &bytes.Buffer{}
	long := time.Hour
	host := &thief{readings: []reading{
		{at: time.Now().Add(-long)},
		{at: time.Now().Add(long), count: stolen.Count{Stolen: share, Total: 1}},
	}}
	return &steady{out: out, thief: host, settle: func(*thief) {}, goTest: func(args []string, read func(io.Reader) error) error {
		cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
		cmd.Dir = folder
		text, err := cmd.Output()
		return errors.Join(read(bytes.NewReader(text)), err)
	}}, out
}

func TestWhatFailsOnAQuietMachineIsRed(t *testing.T) {
	t.Parallel()
	s, out := on(t, 0.01)
	assert.False(t, s.run([]string{"-count=1", "./once", "./fine"}))
	assert.Contains(t, out.String(), "\n--- FAIL: TestFailsOnce")
	assert.Contains(t, out.String(), "FAIL\tsuite/once TestFailsOnce\n")
	assert.Contains(t, out.String(), "ok  \tsuite/fine")
	assert.NotContains(t, out.String(), "told to nobody")
	assert.NotContains(t, out.String(), "in a row")
}

func TestWhatTheHostDisturbedRunsAgainAndIsTold(t *testing.T) {
	t.Parallel()
	s, out := on(t, 0.3)
	assert.True(t, s.run([]string{"-count=1", "-parallel=4", "./once", "./fine"}), "%s", out)
	assert.Contains(t, out.String(), "once TestFailsOnce failed while the host took 30 % of the processors' time")
	assert.Contains(t, out.String(), "\n| --- FAIL: TestFailsOnce/inner")
	assert.NotContains(t, out.String(), "\n--- FAIL")
	assert.NotContains(t, out.String(), "=== ")
	assert.Contains(t, out.String(), "TestFailsOnce has passed 3 times in a row, alone")
}

func TestWhatIsNoMatterOfTimeIsRedOnAnyMachine(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"second", "always", "races", "panics", "killed", "leaks", "broken", "hangs", "missing"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out := on(t, 0.3)
			assert.False(t, s.run([]string{"-count=1", "-timeout=2s", "./fine", "./" + name}))
			assert.Contains(t, out.String(), "FAIL")
			assert.Equal(t, name == "killed", strings.Contains(out.String(), "last words"))
			assert.NotContains(t, out.String(), "in a row")
		})
	}
}

func TestGreenIsGreen(t *testing.T) {
	t.Parallel()
	s, out := on(t, 0)
	assert.True(t, s.run([]string{"./fine"}))
	assert.Regexp(t, `^ok  \tsuite/fine\t[^\n]*\n$`, out.String())
}

func TestMoreThanAFewFailuresAreRedOnAnyMachine(t *testing.T) {
	t.Parallel()
	s := &steady{thief: &thief{readings: []reading{{}, {at: time.Now(), count: stolen.Count{Stolen: 9, Total: 10}}}}}
	all := make([]failure, most+1)
	for i := range all {
		all[i] = failure{test: "Test", from: time.Now().Add(-time.Second), to: time.Now()}
	}
	excused, real := s.judge(all[1:])
	assert.Len(t, excused, most)
	assert.Empty(t, real)
	excused, real = s.judge(all)
	assert.Empty(t, excused)
	assert.Len(t, real, most+1)
}

func TestOnlyThePeriodCounts(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	at := func(seconds int) time.Time { return zero.Add(time.Duration(seconds) * time.Second) }
	host := &thief{}
	for i, taken := range []float64{0, 0, 100, 110, 110, 110} {
		host.add(reading{at(i), stolen.Count{Stolen: taken, Total: 200 * float64(i)}})
	}
	whole, worst := host.taken(at(1).Add(time.Millisecond), at(2).Add(time.Millisecond))
	assert.InDelta(t, 110.0/400, whole, 1e-9)
	assert.InDelta(t, 0.5, worst, 1e-9)
	whole, worst = host.taken(at(3).Add(time.Millisecond), at(9))
	assert.Zero(t, whole+worst)
	whole, worst = (&thief{}).taken(at(0), at(9))
	assert.Zero(t, whole+worst, "nobody counts")
	assert.True(t, disturbs(0.05, 0))
	assert.True(t, disturbs(0, 0.25))
	assert.False(t, disturbs(0.04, 0.2))
}
