package model

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// visible contains the model's steps, numbered as in trace.pml. Steps that are not listed do not appear in traces.
var visible = map[string]byte{
	"send acquire": 1, "run acquire": 2, "granted": 3, "refused": 4, "gave up": 5, "received": 6, "gap": 7, "listening": 8,
	"send renew": 9, "run renew": 10, "unlock": 11, "run release": 12, "hold lost": 13, "deleted": 14, "confirmed": 15, "not sent acquire": 16,
}

// encode returns the steps that the model also has, and the same steps as pan reads them.
func encode(steps []step) (seen []step, text []byte) {
	over, asked, sent := map[[2]int]bool{}, map[int]bool{}, map[int]int{}
	unheard := refusedUnheard(steps)
	for i, s := range steps {
		owner := [2]int{s.who, s.owner}
		over[owner] = over[owner] || s.what == "unlock" || s.what == "hold lost"
		switch {
		case s.what == "reply acquire" && s.value == 1:
			s.what = "granted"
		case s.what == "reply acquire":
			s.what = "refused"
		case s.what == "reply renew" && s.value == 1 && !over[owner]:
			s.what, s.value = "confirmed", 0
		case s.what == "want" || s.what == "send acquire":
			asked[s.who] = s.what != "want"
		case s.what == "gave up" && !asked[s.who]: // before an attempt
			continue
		case s.value == 0 && (s.what == "run renew" || s.what == "run release"):
			continue // they don't change anything
		case unheard[i]:
			continue // so that the model doesn't need more owners
		}
		code := visible[s.what]
		if last, ok := sent[s.who]; ok && (code == 3 || code == 4 || code == 15) && seen[last].owner == s.owner {
			text[4*last+3] = 0 // it has got its reply
		}
		if code == 1 || code == 9 {
			sent[s.who], s.value = len(seen), 1
		}
		if code != 0 {
			seen = append(seen, s)
			text = append(text, code, byte(s.who), byte(s.owner), byte(s.value))
		}
	}
	return seen, append(text, 0, 0, 0, 0)
}

// fits reports whether the model has enough owners for a trace.
func fits(steps []step) bool {
	seen, _ := encode(steps)
	open, last := map[int]int{}, map[[2]int]int{}
	var holder [2]int
	for i, s := range seen {
		owner := [2]int{s.who, s.owner}
		last[owner] = i
		if s.what == "run acquire" && s.value == 1 {
			last[holder] = i // its lease may have ended just before
			holder = owner
		}
	}
	began := map[[2]int]bool{}
	for i, s := range seen {
		owner := [2]int{s.who, s.owner}
		if s.owner == 0 {
			continue
		}
		if !began[owner] {
			began[owner] = true
			open[s.who]++
		}
		if open[s.who] > 3 {
			return false
		}
		if last[owner] == i {
			open[s.who]--
		}
	}
	return true
}

// refusedUnheard returns the attempts that the server refused after their caller had left.
func refusedUnheard(steps []step) map[int]bool {
	unheard, heard := map[int]bool{}, map[[2]int]bool{}
	for i, s := range slices.Backward(steps) {
		owner := [2]int{s.who, s.owner}
		switch s.what {
		case "reply acquire":
			heard[owner] = true
		case "run acquire":
			unheard[i] = s.value == 0 && !heard[owner]
			heard[owner] = false
		}
	}
	return unheard
}

// compile returns the program that checks traces.
func compile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	model, err := filepath.Abs("../../docs/model/plain.pml")
	require.NoError(t, err)
	for _, command := range []string{
		"spin -DTRACE -DCALLERS=3 -DOWN=3 -DLEASE=3 -a " + model,
		"gcc -O2 -w -DNOREDUCE -DSAFETY -DMEMLIM=2000 -o pan pan.c",
	} {
		words := strings.Fields(command)
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return filepath.Join(dir, "pan")
}

// tooLong is the verdict if the search for a trace was not finished.
const tooLong = -3

// check returns the first step that the model rejects in each trace, or a negative number. It ends with the first
// trace that is not a behavior of the model.
func check(t *testing.T, pan string, traces ...[]step) []int {
	t.Helper()
	var all []byte
	for _, steps := range traces {
		_, text := encode(steps)
		all = append(all, text...)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "traces"), all, 0o600))
	cmd := exec.CommandContext(t.Context(), pan, "-m200000", "-A", "-w20", "-n")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "max search depth too small")
	text, err := os.ReadFile(filepath.Join(dir, "verdicts"))
	require.NoError(t, err, "%s", out)
	var rejected []int
	for _, line := range bytes.Fields(text) {
		var n int
		_, err := fmt.Sscan(string(line), &n)
		require.NoError(t, err)
		rejected = append(rejected, n)
	}
	require.Len(t, rejected, len(traces))
	return rejected
}

// story returns a trace up to the step that the model rejects.
func story(steps []step, rejected int) string {
	var b strings.Builder
	seen, _ := encode(steps)
	for _, s := range seen[:rejected+1] {
		fmt.Fprintf(&b, "%8.3f client %d owner %d %s %d\n", s.at.Seconds(), s.who, s.owner, s.what, s.value)
	}
	return b.String()
}
