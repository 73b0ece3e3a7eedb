package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// A user that lacks a right is told which, and where to find the others.
func TestRunNamesTheRightThatIsMissing(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(testing.TB, ...redistest.Option) *redistest.Server{
		"redis": redistest.Start, "valkey": redistest.StartValkey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			url := s.GiveRights(t, []string{"Plain locks"}, "-hincrby")
			got := finish(t, url, "run", "--try", "app:job", "--", "echo", "in")
			require.Equal(t, 125, got.code)
			require.Empty(t, got.stdout)
			oneLine(t, got.stderr)
			require.Regexp(t, ` refuses: (ERR|NOPERM) `, got.stderr)
			require.Contains(t, got.stderr, ". The user lacks +hincrby. `redlatch doctor` shows which rights are missing, "+
				"docs/operations.md what they are for.\n")
			require.NotContains(t, got.stderr, "@user_script", "where in a script")

			s.Do(t, "ACL", "SETUSER", "locks", "+hincrby")
			got = finish(t, url, "run", "--try", "other:job", "--", "echo", "in")
			require.Equal(t, 125, got.code)
			oneLine(t, got.stderr)
			require.Contains(t, got.stderr, "The user lacks ~other:job* ~redisson_lock__channel:{other:job* &redisson_lock__channel:{other:job*. `redlatch doctor`")

			s.Do(t, "ACL", "SETUSER", "locks", "-publish")
			got = finish(t, url, "run", "--try", "app:job", "--", "echo", "in")
			require.Equal(t, 0, got.code, got.stderr)
			require.Equal(t, "in\n", got.stdout)
			oneLine(t, got.stderr)
			require.Regexp(t, "could not be freed and is left to its lease: (ERR|NOPERM) ", got.stderr)
			require.Contains(t, got.stderr, "The user lacks +publish. `redlatch doctor`")
		})
	}
}

func TestRunSaysWhatAKeyIsThatIsNoLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "RPUSH", "app:list", "text")
	s.Do(t, "SET", codec.QueueKey("app:job"), "text")
	for name, says := range map[string]string{
		"app:list": `the key "app:list" holds a list, and a lock is a hash: something else uses this name`,
		"app:job":  `the key "redisson_lock_queue:{app:job}" holds a string, and the queue of a fair lock is a list: something else uses this name`,
	} {
		got := finish(t, s.URL(), "run", "--fair", name, "--", "echo", "in")
		require.Equal(t, outcome{125, "", "redlatch: " + says + "\n"}, got)
	}
	url := s.GiveRights(t, []string{"Plain locks"})
	got := finish(t, url, "run", "app:list", "--", "echo", "in")
	require.Equal(t, outcome{125, "", `redlatch: the key "app:list", or one of those of its queue, holds something that is no lock: ` +
		"something else uses this name. This user may not ask what it is (+type)\n"}, got)
}

func TestEveryCommandNamesTheProgramOnce(t *testing.T) {
	t.Parallel()
	for path, args := range usual {
		args = append([]string(nil), args...)
		for i, arg := range args {
			if arg == "job" {
				args[i] = ""
			}
		}
		got := finish(t, nobody(t), append([]string{path}, args...)...)
		require.NotZero(t, got.code, path)
		require.Equal(t, "redlatch: bad lock name: the name is empty\n", got.stderr, path)
	}
	for text, want := range map[string]string{
		"redlatch: lock lost":                             "lock lost",
		`lock "x": redlatch: lock lost`:                   `lock "x": lock lost`,
		"redlatch: redlatch: a; redlatch: b\nredlatch: c": "a; b\nc",
		`lock "redlatch: x": redlatch: y`:                 `lock "redlatch: x": y`,
		`lock "a\": redlatch: x": z`:                      `lock "a\": redlatch: x": z`,
		"see redlatch: that is all":                       "see redlatch: that is all",
	} {
		require.Equal(t, want, unprefixed(text))
	}
}

// Who may not read the queue frees the lock as a plain one, which the queue hears
// nothing of.
func TestUnlockSaysWhomItHasNotTold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Plain locks", "Inspection"})
	listen := func(channel string) redis.Conn {
		t.Helper()
		c := s.Dial(t)
		_, err := c.Do("SUBSCRIBE", channel)
		require.NoError(t, err)
		return c
	}
	plain, fair := listen(codec.LockChannel("app:job")), listen(codec.OwnerChannel("app:job", redisson))
	queued(t, s, "app:job", redisson, time.Hour)
	for file, flag := range map[string]string{"unlock-untold": "--json=false", "unlock-untold.json": "--json"} {
		s.Do(t, "HSET", "app:job", native, 1)
		got := finish(t, url, "unlock", "--force", "--even-if-alive", flag, "app:job")
		require.Equal(t, 0, got.code, got.stderr)
		fits(t, got.stdout)
		golden(t, file, got.stdout)
		_, err := redis.Values(redis.ReceiveWithTimeout(plain, soon))
		require.NoError(t, err)
	}
	s.Do(t, "PUBLISH", codec.OwnerChannel("app:job", redisson), "the first")
	message, err := redis.Strings(redis.ReceiveWithTimeout(fair, soon))
	require.NoError(t, err)
	require.Equal(t, "the first", message[2])
}

// The manual's user that repairs is told all.
func TestTheManualsOperatorUnlocksAndEvicts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"A user that repairs"})
	queued(t, s, "app:job", redisson, time.Hour)
	s.Do(t, "HSET", "app:job", native, 1)
	got := finish(t, url, "unlock", "--force", "--even-if-alive", "--json", "app:job")
	require.Equal(t, 0, got.code, got.stderr)
	var told map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &told))
	require.Equal(t, "first_in_queue", told["told"])
	require.InDelta(t, 1, told["waiting"], 0)
	got = finish(t, url, "evict", "app:job", redisson)
	require.Equal(t, 0, got.code, got.stderr)
	require.Empty(t, strings.TrimSpace(got.stderr))

	s.Do(t, "HSET", "app:job", native, 1)
	got = finish(t, url, "unlock", "--force", "--even-if-alive", "app:job")
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "  taken  those who wait were told\n")
}
