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

// all has the scripts by the names of their files.
var all = byFile(
	Acquire, Reenter, Release, ReleaseShared, ForceRelease, Pass, Inspect, Renew, Replicate, Foreign, KindOf, AcquireAll, ReleaseAll,
	FairTry, FairAcquire, FairReenter, FairRelease, FairReleaseShared, FairForceRelease, FairGiveUp, FairInspect,
	FairHeartbeat, FairEvict, FairNudge,
	FencedAcquire, FencedReenter, FencedPass, FencedFairTry, FencedFairAcquire, FencedFairReenter, Raise,
	ReadAcquire, ReadReenter, ReadRelease, ReadReleaseShared, ReadRenew, WriteAcquire, WriteRelease, WriteReleaseShared,
	ReadWriteForceRelease, ReadWriteInspect, UndeclaredKey,
	PermitAcquire, PermitRelease, PermitRenew, PermitReplicate, PermitCount, PermitSet, PermitInspect,
	SemaphoreAcquire, SemaphoreDrain, SemaphoreReleaseExisting, SemaphoreAdd, SemaphoreTrySet, LatchSet, LatchCountDown, LatchDelete,
)

func byFile(scripts ...*transport.Script) map[string]*transport.Script {
	all := map[string]*transport.Script{}
	for _, s := range scripts {
		all[s.Name()+".lua"] = s
	}
	return all
}

var (
	documented = regexp.MustCompile(`^-- ((?:KEYS|ARGV)\[[^\]]+\])\s+(\S.*)`)
	section    = regexp.MustCompile(`^-- (Replies|Effects|Messages|Uses):\s+\S`)
	used       = regexp.MustCompile(`(KEYS|ARGV)\[([^\]]+)\]`)
	number     = regexp.MustCompile(`^\d+$`)
	comment    = regexp.MustCompile(`(?m)^--.*\n`)
)

type contract struct {
	params   []string // KEYS[1], ARGV[1..2n] …
	meanings []string
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

// paramsUsed returns the parameters that the code reads, each once; KEYS[…] for a computed index.
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

// source returns the text of a file without fragments.
func source(t *testing.T, file string) string {
	t.Helper()
	text, err := files.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func TestHeadersMatchCode(t *testing.T) {
	t.Parallel()
	for file := range all {
		text := source(t, file)
		c := readContract(text)
		require.NotEmpty(t, c.body, file)
		require.True(t, strings.HasPrefix(text, "-- "), "%s has a header", file)
		require.Equal(t, paramsUsed(c.body), c.paramsDocumented(), file)
		require.Regexp(t, "^Replies( Effects)?( Messages)?( Uses)?$", strings.Join(c.sections, " "), file)
		require.Equal(t, len(fragments(text)) > 0, slices.Contains(c.sections, "Uses"), file)
		require.Equal(t, strings.Contains(c.body, "publish"), slices.Contains(c.sections, "Messages"), file)
		require.True(t, slices.IsSortedFunc(c.params, keysBeforeArgs), "%s lists its parameters in order: %v", file, c.params)
		require.NotContains(t, c.body, "--", "%s: comments belong into the header", file)
		require.NotEmpty(t, c.params, file)
		require.True(t, strings.HasPrefix(c.params[0], "KEYS[1"), "%s has a key", file)
		require.Empty(t, c.outOfOrder(), file)
	}
}

func keysBeforeArgs(a, b string) int {
	if a[0] != b[0] {
		return -strings.Compare(a, b) // K comes after A
	}
	return strings.Compare(a, b)
}

// order is the order of KEYS and of ARGV in all scripts, by the first words of their descriptions.
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

// outOfOrder returns the first parameter that is behind a later one, or that order does not have.
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

// harmless has the exceptions: joined texts, small numbers, few results, and fields in any order.
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

func TestScriptsAvoidServerDifferences(t *testing.T) {
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
