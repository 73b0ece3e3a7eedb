package unlock

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// takes runs unlock --force with an audit, whose line it returns, and compares the output.
func takes(t *testing.T, s *redistest.Server, golden string, args ...string) (audit map[string]any) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	got := program.Finish(t, s.URL(), append([]string{"unlock", "--force", "--for", "10ms", "--reason", "why", "--audit-file", file}, args...)...)
	require.Equal(t, 0, got.Code, got.Stderr)
	program.OneLine(t, got.Stderr)
	program.Golden(t, golden, got.Stdout)
	line, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &audit))
	require.Equal(t, "taken", audit["outcome"])
	require.Equal(t, "unlock --force", audit["action"])
	require.Equal(t, "why", audit["reason"])
	audit["text"] = got.Stderr
	return audit
}

func TestUnlockTakesOneReader(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for golden, flags := range map[string][]string{
		"unlock-reader":      {"--dead", program.RedissonOwner},
		"unlock-reader.json": {"--owner", program.RedissonOwner, "--even-if-alive", "--json"},
	} {
		s.Do(t, "HSET", "books", "mode", "read", program.RedissonOwner, 1, program.RedlatchOwner, 1)
		s.Do(t, "PEXPIRE", "books", time.Hour.Milliseconds())
		for _, owner := range []string{program.RedissonOwner, program.RedlatchOwner} {
			s.Do(t, "SET", readKey("books", owner), 1, "PX", time.Hour.Milliseconds())
		}
		audit := takes(t, s, golden, append(flags, "books")...)
		require.Equal(t, []any{program.RedissonOwner}, audit["taken_from"])
		require.Regexp(t, `took lock "books" on redis://\S+ from `+program.RedissonOwner+` \(Redisson, reads, \S+ left, count 1\), lease \S+ left, left to 1 other; reason "why"\n$`, audit["text"])
		require.Equal(t, []any{[]byte(program.RedlatchOwner), []byte("mode")}, sorted(s.Do(t, "HKEYS", "books")))
	}
}

// sorted returns two keys in order.
func sorted(keys any) []any {
	all, _ := keys.([]any)
	if len(all) == 2 && string(all[0].([]byte)) > string(all[1].([]byte)) {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

func TestUnlockTakesOnePermit(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ends := time.Now().Add(time.Hour).UnixMilli()
	s.Do(t, "SET", "downloads", 0)
	s.Do(t, "ZADD", codec.PermitsKey("downloads"), codec.PermitForever, "0123456789abcdef", ends, "fedcba9876543210", codec.PermitForever, "by hand")
	got := program.Finish(t, s.URL(), "unlock", "--force", "downloads")
	require.Equal(t, 2, got.Code)
	require.Empty(t, got.Stdout)
	require.Contains(t, got.Stderr, "a permit of a semaphore is taken back by its id. `redlatch status` shows the ids, then use --dead ID")
	got = program.Finish(t, s.URL(), "unlock", "--force", "--for", "10ms", "--owner", "30313233343536373839616263646566", "downloads")
	require.Equal(t, 2, got.Code)
	require.Contains(t, got.Stderr, "If you know that it is dead: --dead 30313233343536373839616263646566. ")
	require.Contains(t, got.Stdout, "permits of semaphore \"downloads\" are taken\n")

	audit := takes(t, s, "unlock-permit", "--dead", "30313233343536373839616263646566", "downloads")
	require.Regexp(t, `took permits of semaphore "downloads" on redis://\S+ from 30313233343536373839616263646566 \(permit, never ends\); reason "why"\n$`, audit["text"])
	audit = takes(t, s, "unlock-permit.json", "--owner", "66656463626139383736353433323130", "--even-if-alive", "--json", "downloads")
	require.Equal(t, []any{"66656463626139383736353433323130"}, audit["taken_from"])
	takes(t, s, "unlock-permit-by-hand", "--dead", "62792068616e64", "downloads")
	require.Equal(t, []byte("3"), s.Do(t, "GET", "downloads"))
	require.EqualValues(t, 0, s.Do(t, "EXISTS", codec.PermitsKey("downloads")))
}
