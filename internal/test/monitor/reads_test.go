package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLongestReadAddsUpWhatAScriptReads(t *testing.T) {
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
