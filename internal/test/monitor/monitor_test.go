package monitor

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// everyByte returns a string with all byte values, followed by text that looks like escapes.
func everyByte() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b) + `\n\x00\\" "] [0 lua] "`
}

func TestParsePreservesEveryByte(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	watch := s.Dial(t)
	_, err := watch.Do("MONITOR")
	require.NoError(t, err)
	for _, sent := range []string{everyByte(), "", " ", `"`, `\`, "замок", "a\r\nb\x00"} {
		s.Do(t, "ECHO", sent)
		for {
			text, err := redis.String(redis.ReceiveWithTimeout(watch, 10*time.Second))
			require.NoError(t, err)
			line, err := Parse(text)
			require.NoError(t, err)
			if line.Args[0] != "ECHO" {
				continue
			}
			require.Equal(t, []string{"ECHO", sent}, line.Args)
			require.False(t, line.FromScript())
			break
		}
	}
}

func TestTapeResolvesEvalshaSource(t *testing.T) {
	t.Parallel()
	const text, sha = "return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
	for name, first := range map[string][]string{
		"loaded":     {"SCRIPT", "LOAD", text},
		"in capital": {"script", "load", text},
		"run before": {"EVAL", text, "0"},
	} {
		var tape Tape
		_, ok, err := tape.Add(Line{Args: first})
		require.NoError(t, err, name)
		require.True(t, ok, name)
		call, ok, err := tape.Add(Line{Args: []string{"EVALSHA", sha, "2", "k1", "k2", "a1"}})
		require.NoError(t, err, name)
		require.True(t, ok, name)
		require.Equal(t, text, call.Script)
		require.Equal(t, []string{"k1", "k2"}, call.Keys)
		require.Equal(t, []string{"a1"}, call.Argv)
	}
}

func TestLongestReadSumsScriptReads(t *testing.T) {
	t.Parallel()
	sent := func(args ...string) Line { return Line{Source: "127.0.0.1:1", Args: args} }
	called := func(args ...string) Line { return Line{Source: "lua", Args: args} }
	for _, c := range []struct {
		most  int
		lines []Line
	}{
		{0, []Line{sent("GET", "a"), sent("LRANGE", "a", "100", "200"), called("ZRANGE", "a", "5", "4")}},
		{100, []Line{sent("lrange", "a", "0", "-1")}},
		{10, []Line{sent("LRANGE", "a", "-10", "-1")}},
		{5, []Line{sent("ZRANGE", "a", "95", "1000", "WITHSCORES")}},
		{30, []Line{sent("EVALSHA", "x"), called("LRANGE", "a", "0", "9"), called("GET", "a"), called("ZRANGE", "a", "0", "19"), sent("LRANGE", "a", "0", "19")}},
		{100, []Line{sent("ZRANGE", "a", "-inf", "+inf", "BYSCORE")}},
	} {
		most, by := LongestRead(c.lines, 100)
		require.Equal(t, c.most, most, "%v", c.lines)
		if most > 0 {
			require.Equal(t, c.lines[0], by)
		}
	}
}
