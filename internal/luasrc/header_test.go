package luasrc

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// all are the scripts, by the files that they come from.
var all = map[string]*transport.Script{
	"acquire.lua":        Acquire,
	"release.lua":        Release,
	"force_release.lua":  ForceRelease,
	"renew.lua":          Renew,
	"reenter.lua":        Reenter,
	"release_shared.lua": ReleaseShared,
	"inspect.lua":        Inspect,
	"replicate.lua":      Replicate,
	"pass.lua":           Pass,
	"foreign.lua":        Foreign,
	"kind_of.lua":        KindOf,

	"fair_try.lua":            FairTry,
	"fair_acquire.lua":        FairAcquire,
	"fair_reenter.lua":        FairReenter,
	"fair_release.lua":        FairRelease,
	"fair_release_shared.lua": FairReleaseShared,
	"fair_force_release.lua":  FairForceRelease,
	"fair_give_up.lua":        FairGiveUp,
	"fair_inspect.lua":        FairInspect,
	"fair_heartbeat.lua":      FairHeartbeat,
	"fair_evict.lua":          FairEvict,
	"fair_nudge.lua":          FairNudge,

	"fenced_acquire.lua":      FencedAcquire,
	"fenced_reenter.lua":      FencedReenter,
	"fenced_pass.lua":         FencedPass,
	"fenced_fair_try.lua":     FencedFairTry,
	"fenced_fair_acquire.lua": FencedFairAcquire,
	"fenced_fair_reenter.lua": FencedFairReenter,
	"raise.lua":               Raise,

	"read_acquire.lua":         ReadAcquire,
	"read_reenter.lua":         ReadReenter,
	"read_release.lua":         ReadRelease,
	"read_release_shared.lua":  ReadReleaseShared,
	"read_renew.lua":           ReadRenew,
	"write_acquire.lua":        WriteAcquire,
	"write_release.lua":        WriteRelease,
	"write_release_shared.lua": WriteReleaseShared,
	"rw_force_release.lua":     ReadWriteForceRelease,
	"rw_inspect.lua":           ReadWriteInspect,
	"undeclared_key.lua":       UndeclaredKey,

	"permit_acquire.lua":    PermitAcquire,
	"permit_release.lua":    PermitRelease,
	"permit_renew.lua":      PermitRenew,
	"permit_replicate.lua":  PermitReplicate,
	"permit_count.lua":      PermitCount,
	"permit_set.lua":        PermitSet,
	"permit_inspect.lua":    PermitInspect,
	"semaphore_acquire.lua": SemaphoreAcquire,
	"semaphore_drain.lua":   SemaphoreDrain,
	"semaphore_add.lua":     SemaphoreAdd,
	"semaphore_try_set.lua": SemaphoreTrySet,

	"acquire_all.lua": AcquireAll,
	"release_all.lua": ReleaseAll,

	"latch_set.lua":        LatchSet,
	"latch_count_down.lua": LatchCountDown,
	"latch_delete.lua":     LatchDelete,
}

var (
	documented = regexp.MustCompile(`^-- ((?:KEYS|ARGV)\[[^\]]+\])\s+(\S.*)`)
	section    = regexp.MustCompile(`^-- (Replies|Effects|Messages|Uses):\s+\S`)
	used       = regexp.MustCompile(`(KEYS|ARGV)\[([^\]]+)\]`)
	number     = regexp.MustCompile(`^\d+$`)
	comment    = regexp.MustCompile(`(?m)^--.*\n`)
)

// contract splits a script into what its header says and its code.
type contract struct {
	params   []string // KEYS[1], ARGV[1..2n] …
	meanings []string // what is said of each
	sections []string
	body     string
}

func readContract(text string) contract {
	var c contract
	lines := strings.SplitAfter(text, "\n")
	for len(lines) > 0 && strings.HasPrefix(lines[0], "--") {
		if m := documented.FindStringSubmatch(lines[0]); m != nil {
			c.params, c.meanings = append(c.params, m[1]), append(c.meanings, m[2])
		}
		if m := section.FindStringSubmatch(lines[0]); m != nil {
			c.sections = append(c.sections, m[1])
		}
		lines = lines[1:]
	}
	c.body = strings.Join(lines, "")
	return c
}

// paramsUsed returns the parameters that the code reads, each once. A computed
// index, or the length of all, stands for the whole range: KEYS[…].
func paramsUsed(body string) []string {
	var names []string
	for _, m := range used.FindAllStringSubmatch(body, -1) {
		if number.MatchString(m[2]) {
			names = append(names, m[0])
		} else {
			names = append(names, m[1]+"[…]")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// paramsDocumented returns the header's parameters in the same notation.
func (c contract) paramsDocumented() []string {
	var names []string
	for i, p := range c.params {
		if strings.Contains(c.meanings[i], ", unused:") {
			continue
		}
		if first, _, isRange := strings.Cut(p, ".."); isRange {
			array, _, _ := strings.Cut(first, "[")
			p = array + "[…]"
		}
		names = append(names, p)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// source returns the text of a file, without the fragments that it uses.
func source(t *testing.T, file string) string {
	t.Helper()
	text, err := files.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func TestHeadersAndCodeAgree(t *testing.T) {
	t.Parallel()
	for file := range all {
		text := source(t, file)
		c := readContract(text)
		require.NotEmpty(t, c.body, file)
		require.True(t, strings.HasPrefix(text, "-- "), "%s has a header", file)
		require.Equal(t, paramsUsed(c.body), c.paramsDocumented(), file)
		sections := []string{"Replies", "Effects", "Messages", "Uses"}
		if len(fragments(text)) == 0 {
			sections = sections[:3]
		}
		require.Equal(t, sections, c.sections, file)
		require.True(t, slices.IsSortedFunc(c.params, keysBeforeArgs), "%s lists its parameters in order: %v", file, c.params)
		require.NotContains(t, c.body, "--", "%s: what a script means stands in its header", file)
	}
}

func keysBeforeArgs(a, b string) int {
	if a[0] != b[0] {
		return -strings.Compare(a, b) // K comes after A
	}
	return strings.Compare(a, b)
}

// order is the order of KEYS and of ARGV in all scripts, by the words with which their
// descriptions begin. Each script has those that it needs.
var order = map[string][]string{
	"KEYS": {"the locks", "the lock", "the queue", "the timeouts", "the counter", "the count:", "the lock's channel",
		"its channel", "the latch", "the semaphore", "the permits", "the channel"},
	"ARGV": {
		"now", "owner", "ids", "size", "heir", "wait", "lease", "target", "least", "count", // of the acquisition
		"mode", "keep", "fair wait", "window", "n:", "how many", "subcommand", "the first place", "the last place", // of one script
		"command to publish", "message", "the latch's time to live", "the semaphore's time to live", "given",
		"n pairs", "more owners", "for each lock", // lists
	},
}

// outOfOrder returns the first parameter that stands behind a later one, or that the
// order does not have.
func (c contract) outOfOrder() string {
	last := map[string]int{}
	for i, param := range c.params {
		array, _, _ := strings.Cut(param, "[")
		place, length := -1, 0
		for j, words := range order[array] {
			if strings.HasPrefix(c.meanings[i], words) && len(words) > length {
				place, length = j, len(words)
			}
		}
		if place < last[array] {
			return param + " " + c.meanings[i]
		}
		last[array] = place
	}
	return ""
}

func TestScriptsHaveTheirParametersInOneOrder(t *testing.T) {
	t.Parallel()
	for file := range all {
		require.Empty(t, readContract(source(t, file)).outOfOrder(), file)
	}
	for name, header := range map[string]string{
		"keys":    "-- KEYS[1] the lock\n-- KEYS[2] the latch\n-- KEYS[3] the queue\n",
		"argv":    "-- ARGV[1] lease\n-- ARGV[2] owner\n",
		"unknown": "-- ARGV[1] owner\n-- ARGV[2] colour\n",
	} {
		require.NotEmpty(t, readContract(header).outOfOrder(), name)
	}
}

// A check of the check: headers and code that differ must be noticed.
func TestDisagreementsBetweenHeaderAndCodeAreNoticed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"used, not documented": "-- KEYS[1] the lock\nredis.call('DEL', KEYS[1], ARGV[1])\n",
		"documented, not used": "-- KEYS[1] the lock\n-- ARGV[1] lease\nredis.call('DEL', KEYS[1])\n",
		"number for a range":   "-- KEYS[1] the locks\nreturn KEYS[i]\n",
		"range for a number":   "-- KEYS[1..n] the locks\nreturn KEYS[1]\n",
		"nothing said of it":   "-- KEYS[1]\nreturn KEYS[1]\n",
		"no header":            "return KEYS[1]\n",
	} {
		c := readContract(text)
		require.NotEqual(t, paramsUsed(c.body), c.paramsDocumented(), name)
	}
}

func TestEveryLuaFileIsAScript(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.lua")
	require.NoError(t, err)
	require.Len(t, files, len(all))
	for _, file := range files {
		require.Contains(t, all, file)
		require.True(t, strings.HasSuffix(all[file].Text(), source(t, file)), file)
		require.Equal(t, strings.TrimSuffix(file, ".lua"), all[file].Name())
	}
}

// harmless are the uses of what is forbidden otherwise: texts joined to a text,
// not numbers, but for a count of holds, which is small; so few results that every server's
// stack has room for them; and fields whose order does not matter.
var harmless = strings.NewReplacer(
	"redis.pcall('HKEYS', lock)[1]", "",
	"redis.pcall('HKEYS', lock)", "",
	"waiters: ' .. refused.err", "",
	"name = '{' .. lock .. '}'", "",
	"name .. ':' .. owner .. ':rwlock_timeout:' .. k", "",
	"owner .. ':write'", "",
	"redis.call('HGETALL', KEYS[1])", "",
	"redis.call('HGETALL', lock)", "",
	"channel .. ':' .. waiters[i]", "",
	"channel .. ':' .. waiter", "",
	"unpack(waiting, i, math.min(i + 999, #waiting))", "",
	"unpack(values, i, math.min(i + 999, n))", "",
)

func TestScriptsAvoidWhatServersDoDifferently(t *testing.T) {
	t.Parallel()
	for file, script := range all {
		body := harmless.Replace(comment.ReplaceAllString(script.Text(), ""))
		for _, word := range []string{
			"tostring", "cjson", "cmsgpack", "struct.", "bit.", "HGETALL", "HKEYS", "KEYS'", "unpack", "redis.sha1hex", "..",
		} {
			require.NotContains(t, body, word, file)
		}
	}
}
