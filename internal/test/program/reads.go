package program

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// WatchReads returns a function that returns how many of the n places and n deadlines of a queue one
// command or script has read since, at most.
func WatchReads(t *testing.T, s *redistest.Server, n int) (longest func() int) {
	t.Helper()
	watch := s.Dial(t)
	_, err := watch.Do("MONITOR")
	require.NoError(t, err)
	return func() int {
		t.Helper()
		s.Do(t, "ECHO", "the end")
		var lines []monitor.Line
		for {
			text, err := redis.String(redis.ReceiveWithTimeout(watch, 10*time.Second))
			require.NoError(t, err)
			line, err := monitor.Parse(text)
			require.NoError(t, err)
			if line.Args[0] == "ECHO" {
				most, by := monitor.LongestRead(lines, n)
				t.Logf("%d places of %d commands: %.200q", most, len(lines), by.Args)
				return most
			}
			lines = append(lines, line)
		}
	}
}
