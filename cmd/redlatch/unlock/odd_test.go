package unlock

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestUnlockLeavesHashesThatAreNoLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, fields := range [][]any{
		{"name", "bob", "age", "7"}, {"name", "bob"}, {program.RedissonOwner, "bob"}, {"bob", "1"}, {program.RedissonOwner, "1", program.RedlatchOwner, "1"},
	} {
		name := redistest.Key(t)
		s.Do(t, "HSET", append([]any{name}, fields...)...)
		for _, more := range [][]string{{"--even-if-alive"}, {"--for=1s", "--dead", fields[0].(string)}} {
			got := program.Finish(t, s.URL(), append([]string{"unlock", "--force", name}, more...)...)
			require.Equal(t, 2, got.Code, got.Stderr)
			program.OneLine(t, got.Stderr)
			require.Contains(t, got.Stderr, "is a hash, but no lock")
			require.Empty(t, got.Stdout, "its content may be private")
			require.True(t, program.Exists(t, s, name))
		}
	}
}

// A hash of another program may have millions of fields: reading all of them keeps every other
// client of the server waiting.
func TestUnlockAndEvictDoNotReadAllOfAHashThatIsNoLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	fields := []any{"users"}
	for i := range 1000 {
		fields = append(fields, fmt.Sprint("user:", i), "Ada")
	}
	s.Do(t, "HSET", fields...)
	for _, line := range [][]string{
		{"unlock", "--force", "users"}, {"unlock", "--force", "--even-if-alive", "users"},
		{"evict", "users", program.RedissonOwner}, {"evict", "--all-dead", "users"},
	} {
		s.Do(t, "CONFIG", "RESETSTAT")
		got := program.Finish(t, s.URL(), line...)
		require.NotZero(t, got.Code, line)
		program.OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, "is a hash, ")
		require.NotContains(t, fmt.Sprintf("%s", s.Do(t, "INFO", "commandstats")), "cmdstat_hgetall", line)
	}
}
