package program

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// slowCommand is an entry of SLOWLOG.
type slowCommand struct {
	took time.Duration
	args []string
}

// WatchSlow makes the server log each command that takes longer than the limit. The
// function that it returns gives those logged since, none if the wait for a processor
// explains all of them: SLOWLOG counts the time in which another process had the processor.
// Where the wait is not known, it explains none.
func WatchSlow(t *testing.T, s *redistest.Server, limit time.Duration) (slow func() []string) {
	t.Helper()
	s.Do(t, "CONFIG", "SET", "slowlog-log-slower-than", limit.Microseconds())
	s.Do(t, "CONFIG", "SET", "slowlog-max-len", 10_000)
	s.Do(t, "SLOWLOG", "RESET")
	waited := processorWait(t, s)
	return func() []string {
		t.Helper()
		waited := processorWait(t, s) - waited
		late := slowLog(t, s)
		t.Logf("the server waited %v for a processor; logged as slow: %v", waited, late)
		return unexplained(late, limit, waited)
	}
}

// unexplained returns the commands, or none if their time beyond the limit is no longer than
// the server's wait for a processor.
func unexplained(late []slowCommand, limit, waited time.Duration) (commands []string) {
	var beyond time.Duration
	for _, c := range late {
		beyond += c.took - limit
		commands = append(commands, fmt.Sprint(c.args, " ", c.took))
	}
	if beyond <= waited {
		return nil
	}
	return commands
}

// slowLog returns what SLOWLOG has, and empties it.
func slowLog(t *testing.T, s *redistest.Server) (late []slowCommand) {
	t.Helper()
	entries, err := redis.Values(s.Do(t, "SLOWLOG", "GET", -1), nil)
	require.NoError(t, err)
	for _, entry := range entries {
		fields, err := redis.Values(entry, nil)
		require.NoError(t, err)
		micros, err := redis.Int64(fields[2], nil)
		require.NoError(t, err)
		args, err := redis.Strings(fields[3], nil)
		require.NoError(t, err)
		late = append(late, slowCommand{time.Duration(micros) * time.Microsecond, args})
	}
	s.Do(t, "SLOWLOG", "RESET")
	return late
}

// processorWait is how long the thread that runs the server's commands was ready to run and
// had no processor, or 0 where the system does not say.
func processorWait(t *testing.T, s *redistest.Server) time.Duration {
	t.Helper()
	info, err := redis.String(s.Do(t, "INFO", "server"), nil)
	require.NoError(t, err)
	_, pid, found := strings.Cut(info, "\nprocess_id:")
	require.True(t, found, "INFO server has no process_id")
	pid, _, _ = strings.Cut(pid, "\r")
	text, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/schedstat")
	if err != nil {
		t.Logf("the wait for a processor is not known: %v", err)
		return 0
	}
	fields := strings.Fields(string(text)) // on the processor, waiting for it, turns
	require.Len(t, fields, 3)
	nanos, err := strconv.ParseInt(fields[1], 10, 64)
	require.NoError(t, err)
	return time.Duration(nanos)
}
