package force

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestUnlockReportsMissedNotification(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Plain locks", "Inspection"})
	plain, fair := program.Subscribe(t, s, codec.LockChannel("app:job")), program.Subscribe(t, s, protocol.OwnerChannel("app:job", program.RedissonOwner))
	program.Enqueue(t, s, "app:job", program.RedissonOwner, time.Hour)
	for file, flag := range map[string]string{"unlock-untold": "--json=false", "unlock-untold.json": "--json"} {
		s.Do(t, "HSET", "app:job", program.RedlatchOwner, 1)
		out := program.OK(t, url, "unlock", "--force", "--even-if-alive", flag, "app:job")
		program.Fits(t, out)
		program.Golden(t, file, out)
		_, err := redis.Values(redis.ReceiveWithTimeout(plain, program.Soon))
		require.NoError(t, err)
	}
	s.Do(t, "PUBLISH", protocol.OwnerChannel("app:job", program.RedissonOwner), "the first")
	message, err := redis.Strings(redis.ReceiveWithTimeout(fair, program.Soon))
	require.NoError(t, err)
	require.Equal(t, "the first", message[2])
}

func TestDocumentedOperatorCanUnlockAndEvict(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Repair user"})
	program.Enqueue(t, s, "app:job", program.RedissonOwner, time.Hour)
	s.Do(t, "HSET", "app:job", program.RedlatchOwner, 1)
	reported := program.JSON(t, program.OK(t, url, "unlock", "--force", "--even-if-alive", "--json", "app:job"))
	require.Equal(t, "first_in_queue", reported["notified"])
	require.InDelta(t, 1, reported["queue_length"], 0)
	require.InDelta(t, 0, reported["subscribers"], 0)
	got := program.Finish(t, url, "evict", "app:job", program.RedissonOwner)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Empty(t, strings.TrimSpace(got.Stderr))

	s.Do(t, "HSET", "app:job", program.RedlatchOwner, 1)
	out := program.OK(t, url, "unlock", "--force", "--even-if-alive", "app:job")
	require.Contains(t, out, "  taken  no waiter was notified: no connection of the master is subscribed to\n         the lock's channel\n")
}

func TestDeniedRepairNamesMissingRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Repair user"}, "-del", "-zrem")
	program.Enqueue(t, s, "app:job", program.RedissonOwner, time.Hour)
	s.Do(t, "HSET", "app:job", program.RedlatchOwner, 1)
	for _, args := range [][]string{{"unlock", "--force", "--even-if-alive", "app:job"}, {"evict", "app:job", program.RedissonOwner}} {
		got := program.Finish(t, url, args...)
		require.Equal(t, 1, got.Code)
		require.Contains(t, got.Stderr, "The user lacks +del +zrem. `redlatch doctor --prefix 'app:job'` shows")
	}
}

func TestUnlockWithoutPublishReportsRelease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Repair user"}, "resetchannels")
	for _, how := range [][]string{{"--even-if-alive"}, {"--even-if-alive", "--owner", program.RedlatchOwner}} {
		s.Do(t, "HSET", "app:job", program.RedlatchOwner, 1)
		got := program.Finish(t, url, append([]string{"unlock", "--force", "--json", "app:job"}, how...)...)
		require.Equal(t, 1, got.Code)
		require.Contains(t, got.Stderr, "\nredlatch: the lock was released, but its waiters were not notified: ")
		require.Contains(t, got.Stderr, "The user lacks &redisson_lock__channel:{app:job*")
		require.False(t, program.Exists(t, s, "app:job"))
		reported := program.JSON(t, got.Stdout)
		require.Equal(t, true, reported["taken"])
		require.NotContains(t, reported, "notified")
	}
}

func TestUnlockKeepsForeignHash(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, fields := range [][]any{
		{"name", "bob", "age", "7"}, {"name", "bob"}, {program.RedissonOwner, "bob"}, {"bob", "1"}, {program.RedissonOwner, "1", program.RedlatchOwner, "1"},
	} {
		name := redistest.Key(t)
		s.Do(t, "HSET", append([]any{name}, fields...)...)
		for _, more := range [][]string{{"--even-if-alive"}, {"--for=1s", "--dead", fields[0].(string)}} {
			got := program.Fails(t, s.URL(), 2, "is a hash but not a lock", append([]string{"unlock", "--force", name}, more...)...)
			require.Empty(t, got.Stdout, "its content may be private")
			require.True(t, program.Exists(t, s, name))
		}
	}
}

func TestUnlockAndEvictReadForeignHashPartially(t *testing.T) {
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
		require.Contains(t, got.Stderr, `"users" is a hash but not a lock: `)
		require.NotContains(t, fmt.Sprintf("%s", s.Do(t, "INFO", "commandstats")), "cmdstat_hgetall", line)
	}
}

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

func TestUnlockReleasesOneReader(t *testing.T) {
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
		require.Regexp(t, `took lock "books" on redis://\S+ from `+program.RedissonOwner+` \(Redisson, reads, \S+ left, count 1\), lease \S+ left, 1 other keeps it; reason "why"\n$`, audit["text"])
		require.Equal(t, []any{[]byte(program.RedlatchOwner), []byte("mode")}, sorted(s.Do(t, "HKEYS", "books")))
	}
}

func sorted(keys any) []any {
	all, _ := keys.([]any)
	if len(all) == 2 && string(all[0].([]byte)) > string(all[1].([]byte)) {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

func TestUnlockReleasesOnePermit(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ends := time.Now().Add(time.Hour).UnixMilli()
	s.Do(t, "SET", "downloads", 0)
	s.Do(t, "ZADD", protocol.PermitsKey("downloads"), protocol.PermitForever, "0123456789abcdef", ends, "fedcba9876543210", protocol.PermitForever, "by hand")
	got := program.Finish(t, s.URL(), "unlock", "--force", "downloads")
	require.Equal(t, 2, got.Code)
	require.Empty(t, got.Stdout)
	require.Contains(t, got.Stderr, "release a semaphore's permit by its ID. `redlatch status downloads` shows the IDs; then use --dead ID")
	got = program.Fails(t, s.URL(), 2, "If you are sure that it is dead: --dead 30313233343536373839616263646566. ", "unlock", "--force", "--for", "10ms", "--owner", "30313233343536373839616263646566", "downloads")
	require.Contains(t, got.Stdout, "permit of semaphore \"downloads\" is taken\n")

	audit := takes(t, s, "unlock-permit", "--dead", "30313233343536373839616263646566", "downloads")
	require.Regexp(t, `took permit of semaphore "downloads" on redis://\S+ from 30313233343536373839616263646566 \(permit, never ends\); reason "why"\n$`, audit["text"])
	audit = takes(t, s, "unlock-permit.json", "--owner", "66656463626139383736353433323130", "--even-if-alive", "--json", "downloads")
	require.Equal(t, []any{"66656463626139383736353433323130"}, audit["taken_from"])
	takes(t, s, "unlock-permit-by-hand", "--dead", "62792068616e64", "downloads")
	require.Equal(t, []byte("3"), s.Do(t, "GET", "downloads"))
	require.EqualValues(t, 0, s.Do(t, "EXISTS", protocol.PermitsKey("downloads")))
}
