package luasrc

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

func TestScriptsDoWhatTheVectorsSay(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, playAll)
}

func playAll(t *testing.T, target redistest.Target) {
	t.Helper()
	s := newStage(t, target)
	for _, sc := range scenarios {
		require.NoError(t, s.play(sc))
	}
}

func TestScriptsPublishWithTheCommandTheyAreGiven(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Start(t))
	_, err := s.conn.Do("SPUBLISH", "none", "0")
	if err != nil && strings.Contains(err.Error(), "unknown command") {
		t.Skipf("a server from before Redis 7, without sharded pub/sub: %v", err)
	}
	require.NoError(t, err)
	for _, sc := range shardScenarios {
		require.NoError(t, s.play(sc))
	}
	for _, story := range fairShardStories {
		require.NoError(t, s.tellFair(story))
	}
}

func TestServersKnowScriptsByTheSameDigest(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, loadAll)
}

func loadAll(t *testing.T, target redistest.Target) {
	t.Helper()
	for _, script := range all {
		sha, err := redis.String(target.Do(t, "SCRIPT", "LOAD", script.Text()), nil)
		require.NoError(t, err)
		require.Equal(t, script.SHA(), sha, script.Name())
	}
}

func TestRenewReturnsErrorsThatAreNotOfOneKeyAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := redistest.Key(t)
	server.Do(t, "HSET", l, ownerA, "1")
	server.Do(t, "ACL", "SETUSER", "blind", "on", "nopass", "~*", "+eval", "+pexpire")
	conn := server.Dial(t)
	_, err := conn.Do("AUTH", "blind", "any")
	require.NoError(t, err)
	reply, err := conn.Do("EVAL", Renew.Text(), 1, l, ownerA, 30000)
	require.Error(t, err, "no right to ask is no proof of loss, but the reply was %v", reply)
}

// mutation is a mistake that the vectors must notice.
type mutation struct {
	script   *transport.Script
	old, new string
}

var mutations = []mutation{
	{Acquire, "    redis.call('PEXPIRE', lock, lease)\n", ""},
	{Acquire, "redis.call('HINCRBY', lock, owner, 1)", "redis.call('HSET', lock, owner, 1)"},
	{Acquire, "HINCRBY', lock, owner, 1", "HINCRBY', lock, owner, 2"},
	{Acquire, " or redis.call('HEXISTS', lock, owner) == 1", ""},
	{Acquire, "redis.call('EXISTS', lock) == 0 or ", ""},
	{Acquire, "return nil", "return 0"},
	{Acquire, "'PTTL'", "'TTL'"},
	{Release, "publish, channel, message)", "publish, lock, message)"},
	{Release, "publish, channel, message)", "publish, channel, '1')"},
	{Release, "redis.call(publish, channel, message)\n", ""},
	{Release, "redis.call('DEL', lock)\nredis.call(publish, channel, message)\n", "redis.call(publish, channel, message)\nredis.call('DEL', lock)\n"},
	{Release, "redis.call('DEL', lock)", "redis.call('HDEL', lock, owner)"},
	{Release, "        redis.call('PEXPIRE', lock, lease)\n", ""},
	{Release, "    if tonumber(count) > tonumber(target) then", "    if count ~= target then"},
	{Release, "tonumber(count) > tonumber(target)", "count > target"},
	{Release, "    return nil", "    return 0"},
	{Release, "if not count then\n    return nil\nend\n", ""},
	{Release, "    return 0", "    return 1"},
	{Release, "redis.call('HGET', lock, owner)", "redis.call('HEXISTS', lock, owner) == 1 and redis.call('HGET', lock, owner)"},
	{ForceRelease, "return 1", "return 0"},
	{ForceRelease, "    return 0\n", ""},
	{ForceRelease, "redis.call(publish, channel", "redis.call(publish, lock"},
	{ForceRelease, "redis.call(publish, channel, message)\n", ""},
	{Renew, "            redis.call('PEXPIRE', KEYS[i], lease)\n", ""},
	{Renew, "if redis.call('PTTL', KEYS[i]) < tonumber(lease) then", "if true then"},
	{Renew, "redis.call('PEXPIRE', KEYS[i], lease)", "redis.call('PEXPIRE', KEYS[i], ARGV[2])"},
	{Renew, "'HEXISTS', KEYS[i], owner", "'HEXISTS', KEYS[i], ARGV[1]"},
	{Renew, "if held == 1 then", "if held ~= 1 then"},
	{Renew, "if held == 1 then", "if redis.call('EXISTS', KEYS[i]) == 1 then"},
	{Renew, "redis.pcall", "redis.call"},
	{Renew, "    renewed[i] = 0\n", ""},
	{Reenter, "    if not count then\n        return nil\n    end\n", "    count = count or 0\n"},
	{Reenter, "redis.call('HGET', lock, owner)", "redis.call('EXISTS', lock) == 1 and (redis.call('HGET', lock, owner) or 0)"},
	{Reenter, "redis.call('HSET', lock, owner, target)", "redis.call('HINCRBY', lock, owner, 1)"},
	{Reenter, "tonumber(count) < target", "tonumber(count) ~= target"},
	{Reenter, "tonumber(count) < target", "count < ARGV[3]"},
	{Reenter, "        redis.call('HINCRBY', lock, owner, 1)\n", ""},
	{Reenter, "left >= 0 and left < tonumber(lease)", "left >= 0"},
	{Reenter, "left >= 0 and ", ""},
	{Reenter, "        redis.call('PEXPIRE', lock, lease)\n", ""},
	{Reenter, "return 1", "return 0"},
	{Replicate, "if not count then\n    return nil\nend\n", ""},
	{Replicate, "redis.call('HSET', KEYS[1], ARGV[1], count)\n", ""},
	{Replicate, "ARGV[1], count)", "ARGV[1], 1)"},
	{Replicate, "return 1", "return count"},
	{Pass, "    return 0\n", "    redis.call('DEL', lock)\n"},
	{Pass, "    return 0\n", "    return nil\n"},
	{Pass, "if redis.call('HEXISTS', lock, owner) == 0 then", "if redis.call('EXISTS', lock) == 0 then"},
	{Pass, "redis.call('DEL', lock)\n", ""},
	{Pass, "redis.call('DEL', lock)\nredis.call('HINCRBY', lock, heir, 1)\n", "redis.call('HDEL', lock, owner)\n"},
	{Pass, "redis.call('PEXPIRE', lock, lease)\n", ""},
	{Pass, "return nil", "return 1"},
	{ReleaseShared, "if before then\n    return tonumber(before)\nend\n", ""},
	{ReleaseShared, "return tonumber(before)", "return before"},
	{ReleaseShared, "redis.call('SET', latch, free, 'PX', ttl)\n", ""},
	{ReleaseShared, "'PX', ttl", "'PX', lease"},
	{ReleaseShared, ", 'PX', ttl", ""},
	{ReleaseShared, "    redis.call('PEXPIRE', lock, lease)\n", ""},
	{ReleaseShared, "    redis.call('PEXPIRE', lock, lease)\n", "    redis.call('PEXPIRE', lock, ttl)\n"},
	{ReleaseShared, "tonumber(count) > 1", "tonumber(count) > 2"},
	{ReleaseShared, "redis.call(publish, channel", "redis.call(publish, lock"},
	{ReleaseShared, "redis.call('DEL', lock)", "redis.call('HDEL', lock, owner)"},
	{ReleaseShared, "    free = 1\n", ""},
}

// What is half done stays: a script is not rolled back.
func TestAServerWithoutMemoryRefusesToPassALockOnAndKeepsIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "noeviction"))
	s.Do(t, "HSET", "lock", ownerA, "1")
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	conn := s.Dial(t)
	_, err := conn.Do("EVAL", Pass.Text(), 1, "lock", ownerA, ownerB, 30000)
	require.ErrorContains(t, err, "OOM")
	counts, err := redis.StringMap(conn.Do("HGETALL", "lock"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{ownerA: "1"}, counts)
	_, err = conn.Do("CONFIG", "SET", "maxmemory", "0")
	require.NoError(t, err)
	reply, err := conn.Do("EVAL", Pass.Text(), 1, "lock", ownerA, ownerB, 30000)
	require.NoError(t, err, "a check of the check")
	require.Nil(t, reply)
}

func TestVectorsNoticeMistakesInTheScripts(t *testing.T) {
	testlevel.All(t, "replays the vectors for each mistake")
	testlevel.NoRace(t, testlevel.OneGoroutine)
	t.Parallel()
	s := newStage(t, redistest.Start(t))
	for _, m := range mutations {
		s.mistake(m)
		noticed := slices.ContainsFunc(scenarios, func(sc scenario) bool { return s.play(sc) != nil })
		require.True(t, noticed, "%s with %q in place of %q", m.script.Name(), m.new, m.old)
	}
}
