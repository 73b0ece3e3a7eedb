package diagnosis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

func everything() (words []string) {
	for _, need := range acl.All() {
		for _, word := range need.Words("app:") {
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return words
}

func userWith(t *testing.T, s *redistest.Server, words ...string) string {
	t.Helper()
	args := []any{"SETUSER", "tried", "reset", "on", ">" + redistest.Password}
	for _, word := range words {
		args = append(args, word)
	}
	s.Do(t, "ACL", args...)
	return s.UserURL("tried")
}

func send(t *testing.T, s *redistest.Server, command string) {
	t.Helper()
	var args []any
	for _, word := range strings.Fields(command)[1:] {
		args = append(args, word)
	}
	s.Do(t, "ACL", args...)
}

// These patterns match all channels of locks, of read/write locks, of semaphores and of latches.
const (
	lockPattern, rwPattern         = "&redisson_lock__channel:*", "&redisson_rwlock:*"
	semaphorePattern, latchPattern = "&redisson_sc:*", "&redisson_countdownlatch__channel__*"
	onlookersPatterns              = lockPattern + " " + rwPattern + " " + semaphorePattern + " " + latchPattern
)

// lacksOnly checks that only the needs that include any of these words are reported as lacking, and
// that the command of each finding grants its missing words.
func lacksOnly(t *testing.T, all map[string]Finding, missing ...string) {
	t.Helper()
	for i := range questions {
		q := &questions[i]
		f, reported := all[q.check()]
		if assert.Equal(t, !q.named, reported, q.check()); !reported {
			continue
		}
		lacks := slices.DeleteFunc(acl.Of(q.id).Words("app:"), func(word string) bool {
			return !slices.Contains(missing, word) || q.id != acl.Braces && strings.HasPrefix(word, "~{")
		})
		switch {
		case len(lacks) == 0:
			assert.Equal(t, OK, f.Level, "without %s, %s: %s", missing, q.check(), f.Found)
			assert.Empty(t, f.Command)
			continue
		case q.id == acl.Plain:
			assert.Equal(t, Error, f.Level, "without %s", missing)
		default:
			assert.Equal(t, Warning, f.Level, "without %s: %s", missing, q.check())
		}
		assert.Equal(t, q.advice, f.Advice)
		found, grants := "user tried lacks "+spaced(lacks)+", which "+q.use+" need", "ACL SETUSER tried "+spaced(lacks)
		if slices.Contains(lacks, "+psubscribe") { // nothing else can try the patterns
			found, grants = found+"; could not test "+onlookersPatterns, grants+" "+onlookersPatterns
		}
		assert.Equal(t, found, f.Found)
		assert.Equal(t, grants, f.Command)
	}
}

func TestDoctorNamesMissingRightsAndGrant(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, ...redistest.Option) *redistest.Server{
		"redis": redistest.Start, "valkey": redistest.StartValkey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "valkey" {
				testlevel.All(t, "the same on Valkey")
			}
			s := start(t)
			all := everything()
			for _, word := range testlevel.Part(all, 4, name) {
				missing := []string{word}
				switch word { // the pattern of all channels includes these
				case "&redisson_lock__channel:{app:*":
					missing = append(missing, lockPattern)
				case "&redisson_rwlock:{app:*":
					missing = append(missing, rwPattern)
				case "&redisson_sc:{app:*":
					missing = append(missing, semaphorePattern)
				case "&redisson_countdownlatch__channel__{app:*":
					missing = append(missing, latchPattern)
				}
				url := userWith(t, s, slices.DeleteFunc(slices.Clone(all), func(w string) bool { return slices.Contains(missing, w) })...)
				lacksOnly(t, examined(t, url, "app:"), missing...)
			}
			lacksOnly(t, examined(t, userWith(t, s, all...), "app:"))
			require.EqualValues(t, 0, s.Do(t, "DBSIZE"), "something is left on the server")
		})
	}
}

func TestSuggestedRulesGrantAllNeeds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := userWith(t, s)
	found := examined(t, url, "app:")
	for i := range questions {
		if f, reported := found[questions[i].check()]; reported {
			send(t, s, f.Command)
		}
	}
	found = examined(t, url, "app:")
	lacksOnly(t, found)
	for _, check := range []string{"scripts", "lock", "fair lock", "pub/sub", "counting", "clock"} {
		require.Equal(t, OK, found[check].Level, found[check].Found)
	}
}

func TestPlainLocksNeedExactlyDocumentedRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Plain locks"})
	found := examined(t, url, "app:")
	for check, f := range found {
		require.Less(t, f.Level, Error, "%s: %s", check, f.Found)
	}
	require.Equal(t, OK, found["plain rights"].Level, found["plain rights"].Found)
	require.Equal(t, OK, found["lock"].Level)
	require.Equal(t, Warning, found["inspect rights"].Level)
	require.Equal(t, "ACL SETUSER locks +hgetall", found["inspect rights"].Command)
	require.Equal(t, "ACL SETUSER locks +time", found["clocks rights"].Command)

	s.GiveRights(t, []string{"Fair locks"})
	found = examined(t, url, "app:")
	require.Equal(t, OK, found["fair rights"].Level, found["fair rights"].Found)
	require.Equal(t, OK, found["fair lock"].Level, "it does without the server's time: %s", found["fair lock"].Found)
}

func TestDoctorChecksOnlyNeededRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Plain locks", "Fair locks"})
	found := examined(t, url, "app:", acl.Fair, acl.Clocks)
	var checks []string
	for check := range found {
		if strings.HasSuffix(check, " rights") {
			checks = append(checks, check)
		}
	}
	require.ElementsMatch(t, []string{"plain rights", "fair rights", "clocks rights"}, checks)
	require.Equal(t, OK, found["fair rights"].Level, found["fair rights"].Found)
	require.Equal(t, Error, found["clocks rights"].Level)
	require.Contains(t, found, "fair lock")
	require.NotContains(t, found, "counting")

	for _, c := range []struct{ title, id string }{{"Inspection user", acl.Viewer}, {"Repair user", acl.Operator}} {
		found = examined(t, s.GiveRights(t, []string{c.title}), "app:", c.id)
		require.Equal(t, OK, found[c.id+" rights"].Level, found[c.id+" rights"].Found)
		require.NotContains(t, found, "plain rights")
		require.NotContains(t, found, "lock", "it takes none")
		for check, f := range found {
			require.Less(t, f.Level, Error, "%s: %s", check, f.Found)
		}
	}
}

func TestEachNeedIsCheckedOnce(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, need := range acl.All() {
		ids = append(ids, need.ID)
	}
	require.ElementsMatch(t, ids, Needs())
	e := &examination{name: "x"}
	for _, need := range acl.All() {
		for _, command := range need.Commands {
			switch command {
			case "rpush", "sadd", "incr", "decr", "subscribe", "unsubscribe", "psubscribe":
				continue
			}
			require.Contains(t, e.trials(), command, "it is not tried")
		}
	}
}

func TestUntestableRightsAreReported(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	without := func(out ...string) string {
		return userWith(t, s, slices.DeleteFunc(everything(), func(word string) bool { return slices.Contains(out, word) })...)
	}
	f := examined(t, without("+set", "+hset", "+lpop"), "app:")["fair rights"]
	require.Equal(t, "user tried lacks +lpop, which fair locks need; could not test +rpush +sadd", f.Found)
	require.Equal(t, "ACL SETUSER tried +lpop +rpush +sadd", f.Command)
	require.Contains(t, examined(t, without("+del", "+pexpire"), "app:")["fair rights"].Found, "could not test +rpush +sadd", "it could not be removed")

	f = examined(t, userWith(t, s, "~{app:*"), "app:")["braces rights"]
	require.Equal(t, Unknown, f.Level)
	require.Equal(t, "user tried has all tested rights for names with their own braces; could not test ~{app:*", f.Found)
	require.Equal(t, "ACL SETUSER tried ~{app:*", f.Command)

	// ACL DRYRUN itself requires a permission.
	url := without("+set", "+hset", "+lpop")
	s.Do(t, "ACL", "SETUSER", "tried", "+acl|dryrun", "+acl|whoami")
	require.Equal(t, "ACL SETUSER tried +lpop", examined(t, url, "app:")["fair rights"].Command)
	s.Do(t, "ACL", "SETUSER", "tried", "-rpush")
	require.Equal(t, "ACL SETUSER tried +lpop +rpush", examined(t, url, "app:")["fair rights"].Command)
}

func TestForbiddenShardedPubSubIsNotMissing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := examined(t, userWith(t, s, "+ping"), "")["sharded"]
	require.Equal(t, Unknown, f.Level, "unknown is not ok")
	require.Contains(t, f.Found, "cannot tell whether this is a cluster (+info) and whether sharded pub/sub works")
	f = examined(t, userWith(t, s, "+info"), "")["sharded"]
	require.Equal(t, OK, f.Level)
	require.Equal(t, "Redisson uses PUBLISH outside a cluster", f.Found, "it does not matter there")
	require.NotContains(t, examined(t, s.URL(), "")["sharded"].Found, "unknown")
	require.Contains(t, examined(t, redistest.Mini(t).URL(), "")["sharded"].Found, "no sharded pub/sub")

	e := examination{masters: 3, c: answered{err: redis.Error("NOPERM this user has no permissions")}}
	require.Contains(t, e.sharded().Found, "Redisson's AUTO uses PUBLISH as this user", "a cluster without +info")

	s = redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes", "--cluster-config-file", t.TempDir()+"/nodes.conf"))
	f = examined(t, userWith(t, s, "+info"), "")["sharded"]
	require.Equal(t, Warning, f.Level)
	require.Contains(t, f.Found, "this user may not query it; so Redisson's AUTO uses PUBLISH as this user")
	require.Equal(t, "ACL SETUSER tried +pubsub|shardnumsub", f.Command)
	send(t, s, f.Command)
	require.Contains(t, examined(t, s.UserURL("tried"), "")["sharded"].Found, "Redisson's AUTO uses SPUBLISH")
}

// Servers before Redis 7 lack ACL DRYRUN, and few users may send it.
func TestTrialWritesExpireWhenReplyIsLost(t *testing.T) {
	t.Parallel()
	for sent, need := range map[string]string{
		"*3\r\n$5\r\nRPUSH\r\n": acl.Fair, "*3\r\n$4\r\nSADD\r\n": acl.Fair, "*2\r\n$4\r\nINCR\r\n": acl.Tokens, "*2\r\n$4\r\nDECR\r\n": acl.Latches,
	} {
		command := strings.ToLower(strings.Fields(sent)[2])
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			userWith(t, s, everything()...)
			p := redistest.NewProxy(t, s.Addr())
			srv, err := connect.New(connect.Settings{Address: "redis://tried:" + redistest.Password + "@" + p.Addr()})
			require.NoError(t, err)
			held := p.HoldMatching(redistest.ToServer, sent)
			failed := make(chan error, 1)
			go func() {
				_, err := lacks(t.Context(), srv, "app:", need)
				failed <- err
			}()
			select {
			case <-held.Seen():
			case err := <-failed:
				require.Failf(t, "it was not sent", "%v", err)
			}
			p.Blackhole(redistest.ToClient)
			held.Release()
			require.Eventually(t, func() bool { return s.CommandStats(t)[command] > 0 }, time.Minute, 5*time.Millisecond)
			p.Reset()
			require.Error(t, <-failed)
			keys, err := redis.Strings(s.Do(t, "KEYS", "*"), nil)
			require.NoError(t, err)
			for _, key := range keys {
				require.NotEqualValues(t, -1, s.Do(t, "PTTL", key), "%s does not expire", key)
			}
		})
	}
}

// Users paste these rules, so a name with a space would add a rule.
func TestRulesOmitUnsupportedNames(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	srv, err := connect.New(connect.Settings{Address: userWith(t, s, "+ping", "+exists", "+acl|whoami", "+acl|dryrun")})
	require.NoError(t, err)
	missing, err := lacks(t.Context(), srv, "a b +@all ~*", acl.Plain)
	require.NoError(t, err)
	require.Contains(t, missing, "+eval")
	for _, word := range missing {
		require.Regexp(t, `^\+[a-z|]+$`, word)
	}
	missing, err = lacks(t.Context(), srv, "app:", acl.Plain)
	require.NoError(t, err)
	require.Contains(t, missing, "~app:*")

	e := &examination{c: whoami{name: "guest"}}
	require.Equal(t, "ACL SETUSER guest +ping", e.grant([]string{"+ping"}))
	e.c = whoami{name: "guest +@all ~*"}
	require.Equal(t, "ACL SETUSER NAME +ping", e.grant([]string{"+ping"}))
}

// whoami is a connection whose reply to ACL WHOAMI is fixed.
type whoami struct {
	redis.Conn
	name string
}

func (w whoami) Do(string, ...any) (any, error) { return []byte(w.name), nil }

func TestDoctorTriesLatchCountDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, rights := range [][]string{nil, {"+acl|dryrun", "+acl|whoami"}} {
		all := append(everything(), rights...)
		f := examined(t, userWith(t, s, append(all, "-decr")...), "app:", acl.Latches)["latches rights"]
		require.Equal(t, "ACL SETUSER tried +decr", f.Command, f.Found)
		f = examined(t, userWith(t, s, all...), "app:", acl.Latches)["latches rights"]
		require.Equal(t, OK, f.Level, f.Found)
	}
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
}
