package show

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestStatusOfSeveralNamesExitsWithWorst(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "held", program.SomeOwner, 1)
	s.Do(t, "RPUSH", "list", 1)
	program.Enqueue(t, s, "queued", program.RedissonOwner, time.Hour)
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"held free", 0, "lock \"held\" is held\n", ""},
		{"--exit-code held free", 3, "\n\nlock \"free\" is free\n", ""},
		{"--exit-code list free held", 1, "lock \"held\" is held\n", "redlatch: the key \"list\" holds a list, "},
		{"-o name held free queued", 0, "held\nqueued\n", ""},
		{"-o wide --no-headers held free", 0, "\nfree  -      -  ", ""},
	} {
		got := program.Finish(t, s.URL(), append([]string{"status", "--for=10ms"}, strings.Fields(c.args)...)...)
		require.Equal(t, c.code, got.Code, c.args)
		require.Contains(t, got.Stdout, c.stdout, c.args)
		require.True(t, strings.HasPrefix(got.Stderr, c.stderr) && (c.stderr != "" || got.Stderr == ""), got.Stderr)
	}
	got := program.Finish(t, s.URL(), "status", "--json", "held", "list", "free")
	var locks []struct {
		Name, Error string
		Held        bool
	}
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &locks), got.Stdout)
	require.Equal(t, 1, got.Code)
	require.Len(t, locks, 3)
	require.True(t, locks[0].Held)
	require.Equal(t, "wrong_type", locks[1].Error)
	require.Equal(t, "free", locks[2].Name)
	require.NoError(t, json.Unmarshal([]byte(program.OK(t, s.URL(), "status", "-o", "json", "held")), &locks[0]), "one lock is an object")
	require.Contains(t, program.OK(t, s.URL(), "status", "-o", "yaml", "held", "free"), "\n- name: \"free\"\n")
}

func TestStatusErrorKeepsOtherNames(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "mine", program.SomeOwner, 1)
	s.Do(t, "ACL", "SETUSER", "reader", "on", ">sesame", "+@all", "~mine", "~*:{mine}*", "&*")
	url := strings.Replace(s.URL(), "://", "://reader:sesame@", 1)
	for format, says := range map[string]string{
		"": `lock "mine" is held`, "-o=json": `"name": "mine"`, "-o=yaml": `name: "mine"`, "-o=wide": "mine", "-o=name": "mine",
	} {
		for _, names := range [][]string{{"mine", "theirs"}, {"theirs", "mine"}} {
			got := program.Finish(t, url, slices.Concat([]string{"status", "--for=10ms"}, strings.Fields(format), names)...)
			require.Equal(t, 1, got.Code)
			require.Contains(t, got.Stdout, says)
			program.OneLine(t, got.Stderr)
			require.Contains(t, got.Stderr, "NOPERM")
		}
	}
}

func TestListFormatsKeepOneLinePerLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	require.Equal(t, "[]\n", program.OK(t, s.URL(), "list", "-o", "yaml"))
	require.Equal(t, "[]\n", program.OK(t, s.URL(), "watch", "-o", "yaml", "--for", "1ns", "*"))
	evil := "-f\n victim \"x\u202e"
	for _, name := range []string{"orders:2", "no", evil} {
		s.Do(t, "HSET", name, program.SomeOwner, 1)
	}
	s.Do(t, "SET", "pool", 3)
	s.Do(t, "ZADD", protocol.PermitsKey("pool"), time.Now().Add(time.Hour).UnixMilli(), "0123456789abcdef")
	const word = `\0055f\0012\0040victim\0040\0042x\0342\0200\0256`
	require.Equal(t, word+"\nno\norders:2\npool\n", program.OK(t, s.URL(), "list", "-o", "name"))
	lines := strings.Split(program.OK(t, s.URL(), "list", "-o", "wide"), "\n")
	require.Len(t, lines, 4+3, "a heading, a total and an end: %q", lines)
	require.Equal(t, wideHeading, strings.Fields(lines[0]))
	for _, line := range lines[1:5] {
		require.Len(t, strings.Fields(line), len(wideHeading), line)
	}
	require.Equal(t, []string{word, "plain", program.SomeOwner, "redlatch", "1", "none", "-", "-", "-", "-", "-"}, strings.Fields(lines[1]))
	require.Contains(t, lines[4], "taken=1,available=3")
	bare := program.OK(t, s.URL(), "list", "-o", "wide", "--no-headers")
	require.Equal(t, strings.Fields(strings.Join(lines[1:5], " ")), strings.Fields(bare))
	require.Equal(t, 4, strings.Count(bare, "\n"))
	yaml := program.OK(t, s.URL(), "list", "-o", "yaml", "--sort", "name")
	require.Equal(t, 4, strings.Count("\n"+yaml, "\n- name: \""), yaml)
	require.Contains(t, yaml, "- name: \"no\"\n  kind: \"plain\"\n  held: true\n")
	require.Contains(t, yaml, `- name: "-f\n victim \"x\u202e"`)
}
