package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The comment behind each test in testdata/tests is the expected report.
func TestReportsTestsInRealTime(t *testing.T) {
	tool, err := exec.Command("go", "tool", "-n", "realtime").Output()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "vet", "-vettool="+strings.TrimSpace(string(tool)), "./testdata/tests").CombinedOutput()
	if err == nil {
		t.Error("vet succeeded")
	}
	tests, err := os.ReadFile(filepath.Join("testdata", "tests", "a_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	want := lines(`func (Test\w+).* // (.*)`, tests)
	if got := lines(`go:[0-9:]+ (\w+) (.*): use`, out); len(want) != 7 || !slices.Equal(got, want) {
		t.Errorf("vet reported %q, want %q:\n%s", got, want, out)
	}
}

func lines(pattern string, text []byte) (found []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1]+" "+match[2])
	}
	slices.Sort(found)
	return found
}
