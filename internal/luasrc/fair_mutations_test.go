package luasrc

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

// each is the same mistake in several scripts.
func each(scripts []*transport.Script, before, after string) []mutation {
	var all []mutation
	for _, script := range scripts {
		all = append(all, mutation{script, before, after})
	}
	return all
}

var (
	withNow      = []*transport.Script{FairTry, FairAcquire, FairReenter, FairRelease, FairReleaseShared, FairForceRelease, FairGiveUp}
	removeDead   = withNow[:6]
	takeOrEnter  = withNow[:2]
	tellHead     = withNow[3:6]
	serversClock = "redis.call('TIME')[1] * 1000"
)

var fairMutations = slices.Concat(
	each(withNow, "tonumber(ARGV[1])", serversClock),
	each(withNow, "tonumber(deadline) <= now", "tonumber(deadline) < now"),
	each(withNow, "return deadline and tonumber(deadline)", "return not deadline or tonumber(deadline)"),
	each(removeDead, "while head and overdue(timeouts, head, now) do", "while false do"),
	each(removeDead, "        redis.call('ZREM', timeouts, head)\n", ""),
	each(removeDead, "        redis.call('LPOP', queue)\n        head", "        head"),
	each(removeDead, "redis.call('LPOP', queue)\n        head", "redis.call('LREM', queue, 0, head)\n        head"),
	each(removeDead, "        head = redis.call('LINDEX', queue, 0)\n", ""),
	each(takeOrEnter, "redis.call('EXISTS', lock) == 0 and ", ""),
	each(takeOrEnter, "(not head or head == owner)", "true"),
	each(takeOrEnter, "(not head or head == owner)", "not head"),
	each(takeOrEnter, "(not head or head == owner)", "head == owner"),
	each(takeOrEnter, "        redis.call('LPOP', queue)\n        redis.call('ZREM', timeouts, owner)\n", "        redis.call('ZREM', timeouts, owner)\n"),
	each(takeOrEnter, "redis.call('LPOP', queue)\n        redis.call('ZREM', timeouts, owner)",
		"redis.call('LREM', queue, 0, owner)\n        redis.call('ZREM', timeouts, owner)"),
	each(takeOrEnter, "        redis.call('ZREM', timeouts, owner)\n", ""),
	each(takeOrEnter, "        shift(lock, timeouts, wait)\n", ""),
	each(takeOrEnter, "'ZRANGE', timeouts, 0, -1", "'ZRANGE', timeouts, 1, -1"),
	each(takeOrEnter, "'WEIGHTS', 1, -by", "'WEIGHTS', 1, 0"),
	each(takeOrEnter, "'WEIGHTS', 1, -by", "'WEIGHTS', 1, by"),
	each(takeOrEnter, "timeouts, 2, timeouts, lock", "timeouts, 2, lock, timeouts"),
	each(takeOrEnter, "        redis.call('DEL', lock)\n", ""),
	each(takeOrEnter, "if expires >= 0 then", "if expires < 0 then"),
	each(takeOrEnter, "'ZINCRBY', timeouts, -by", "'ZINCRBY', timeouts, by"),
	each(takeOrEnter, "        redis.call('ZINCRBY', timeouts, -by, waiting[i])\n", ""),
	each(takeOrEnter, "for i = 1, moved and 0 or #waiting do", "for i = 1, #waiting do"),
	each(takeOrEnter, "'HSET', lock, owner, 1)\n        redis.call('PEXPIRE', lock, lease)\n", "'HSET', lock, owner, 1)\n"),
	each(takeOrEnter, "'HINCRBY', lock, owner, 1)\n        redis.call('PEXPIRE', lock, lease)\n", "'HINCRBY', lock, owner, 1)\n"),
	each(takeOrEnter, "'HINCRBY', lock, owner, 1", "'HSET', lock, owner, 1"),
	each(takeOrEnter, "redis.call('HEXISTS', lock, owner) == 1", "redis.call('EXISTS', lock) == 1"),
	each(takeOrEnter, "redis.call('HEXISTS', lock, owner) == 1", "false"),
	each(tellHead, "channel .. ':' .. waiter", "channel"),
	each(tellHead, "channel .. ':' .. waiter", "channel .. waiter"),
	each(tellHead, "redis.call(publish", "redis.call('SPUBLISH'"),
	each(tellHead, "waiter, message)\nend", "waiter, '1')\nend"),
	each(tellHead, "redis.call('DEL', lock)", "redis.call('DEL', lock, queue)"),
	[]mutation{
		{FairTry, "return 1\n", "return 0\n"},
		{FairTry, "return 1\n", "return redis.call('PTTL', lock)\n"},
		{FairTry, "return 1\n", "redis.call('RPUSH', queue, owner)\nreturn 1\n"},
		{FairAcquire, "if redis.call('ZSCORE', timeouts, owner) then", "if false then"},
		{FairAcquire, "left = math.max(0, left)", ""},
		{FairAcquire, "left = math.max(0, left)", "left = redis.call('ZSCORE', timeouts, owner) - now"},
		{FairAcquire, "'LINDEX', queue, -1", "'LINDEX', queue, 0"},
		{FairAcquire, "left = tonumber(deadline) - now", "left = math.max(0, deadline - now)"},
		{FairAcquire, "left = tonumber(deadline) - now", "left = math.floor(deadline - now)"},
		{FairAcquire, "if deadline then", "if false then"},
		{FairAcquire, "left + wait + now", "left + now"},
		{FairAcquire, "left + wait + now", "wait + now"},
		{FairAcquire, "left + wait + now", "math.max(left, 0) + wait + now"},
		{FairAcquire, "redis.call('ZADD', timeouts, left + wait + now, owner)\n", ""},
		{FairAcquire, "queued = redis.call('RPUSH', queue, owner)\n", "queued = 1\n"},
		{FairAcquire, "'RPUSH'", "'LPUSH'"},
		{FairAcquire, "queued = redis.call('RPUSH', queue, owner)\n", "redis.call('LREM', queue, 0, owner)\n        queued = redis.call('RPUSH', queue, owner)\n"},
		{FairAcquire, "return left\n", "return redis.call('PTTL', lock)\n"},
		{FairReenter, "    if not count then\n        return nil\n    end\n", "    count = count or 0\n"},
		{FairReenter, "redis.call('HSET', lock, owner, target)", "redis.call('HINCRBY', lock, owner, 1)"},
		{FairReenter, "elseif tonumber(count) < target then", "elseif tonumber(count) ~= target then"},
		{FairReenter, "tonumber(count) < target", "count < ARGV[4]"},
		{FairReenter, "if target == 0 then", "if false then"},
		{FairReenter, "left >= 0 and left < tonumber(lease)", "left >= 0"},
		{FairReenter, "left >= 0 and ", ""},
		{FairReenter, "        redis.call('PEXPIRE', lock, lease)\n", ""},
		{FairReenter, "return reenter(lock, owner, lease, target)", "return reenter(lock, owner, lease, 0)"},
		{FairReenter, "return 1\n", "return 0\n"},
	},
	releaseMutations,
	giveUpMutations,
)

var releaseMutations = []mutation{
	{FairRelease, "tonumber(count) > tonumber(target)", "count > target"},
	{FairRelease, "    if tonumber(count) > tonumber(target) then\n", "    if count ~= target then\n"},
	{FairRelease, "        redis.call('PEXPIRE', lock, lease)\n", ""},
	{FairRelease, "    return 0\n", "    return 1\n"},
	{FairRelease, "count and tonumber(target) > 0", "count and tonumber(target) ~= tonumber(count) - 1"},
	{FairRelease, "    redis.call('DEL', lock)\n", ""},
	{FairRelease, "redis.call('DEL', lock)", "redis.call('HDEL', lock, owner)"},
	{FairRelease, "redis.call('DEL', lock)", "redis.call('DEL', lock)\n    redis.call('LPOP', queue)"},
	{FairRelease, "    outcome = 2\n", ""},
	{FairRelease, "    outcome = 2\n", "    return 2\n"},
	{FairRelease, "elseif redis.call('EXISTS', lock) == 0 then", "elseif true then"},
	{FairRelease, "    return nil\n", "    return 0\n"},
	{FairRelease, "    wake(channel, head, publish, message)\n", ""},
	{FairReleaseShared, "if before then\n    return tonumber(before)\nend\n", ""},
	{FairReleaseShared, "return tonumber(before)", "return before"},
	{FairReleaseShared, "local before", "redis.call('LPOP', queue)\nlocal before"},
	{FairReleaseShared, "    outcome = 2\n", ""},
	{FairReleaseShared, "    outcome = 2\n", "    return 2\n"},
	{FairReleaseShared, "    return nil\n", "    outcome = 0\n"},
	{FairReleaseShared, "tonumber(count) > 1", "tonumber(count) > 2"},
	{FairReleaseShared, "    redis.call('PEXPIRE', lock, lease)\n", ""},
	{FairReleaseShared, "    outcome = 0\n", ""},
	{FairReleaseShared, "redis.call('DEL', lock)", "redis.call('HDEL', lock, owner)"},
	{FairReleaseShared, "redis.call('SET', latch, outcome, 'PX', ttl)\n", ""},
	{FairReleaseShared, ", 'PX', ttl", ""},
	{FairReleaseShared, "'PX', ttl", "'PX', lease"},
	{FairReleaseShared, "SET', latch, outcome", "SET', latch, math.min(outcome, 1)"},
	{FairReleaseShared, "outcome > 0 and ", ""},
	{FairReleaseShared, "outcome > 0 and ", "outcome == 1 and "},
	{FairReleaseShared, "    wake(channel, head, publish, message)\n", ""},
	{FairForceRelease, "    return 0\n", ""},
	{FairForceRelease, "    return 0\n", "    return 1\n"},
	{FairForceRelease, "return 1\n", "return 0\n"},
	{FairForceRelease, "    wake(channel, head, publish, message)\n", ""},
}

var giveUpMutations = []mutation{
	{FairGiveUp, "    if not waits[ARGV[i]] then\n", "    if true then\n"},
	{FairGiveUp, "for i = 6, #ARGV, 2 do", "for i = 8, #ARGV, 2 do"},
	{FairGiveUp, "waits[ARGV[i]] = ARGV[i], tonumber(ARGV[i + 1])", "waits[ARGV[i]] = ARGV[i], tonumber(ARGV[3])"},
	{FairGiveUp, "places[waiter] and 0 or wait", "wait"},
	{FairGiveUp, "(fall or 0) + ", ""},
	{FairGiveUp, "(places[waiter] or 0) + 1", "1"},
	{FairGiveUp, "from = from or fall and place", "from = fall and place"},
	{FairGiveUp, "from = from or fall and place", "from = from or place"},
	{FairGiveUp, "front = front or from and #stay", "front = from and #stay"},
	{FairGiveUp, "for i = front, #stay do", "for i = 1, #stay do"},
	{FairGiveUp, "for i = front, #stay do", "for i = front + 1, #stay do"},
	{FairGiveUp, "for i = from, #waiters do", "for i = from, #waiters - 1 do"},
	{FairGiveUp, "        if not waits[waiter] then\n", "        if true then\n"},
	{FairGiveUp, "'ZINCRBY', timeouts, -falls", "'ZINCRBY', timeouts, falls"},
	{FairGiveUp, "'ZINCRBY', timeouts, -falls", "'ZADD', timeouts, 'XX', 'INCR', -falls"},
	{FairGiveUp, "            redis.call('ZINCRBY', timeouts, -falls[i], stay[i])\n", ""},
	{FairGiveUp, "moved[read + 1] - falls[k]", "moved[read + 1]"},
	{FairGiveUp, "moved[read + 1] - falls[k]", "moved[read + 1] + falls[k]"},
	{FairGiveUp, "moved[read + 1] - falls[k]", "moved[read + 1] - fall"},
	{FairGiveUp, "moved[read + 1] - falls[k]", "math.floor(moved[read + 1] - falls[k])"},
	{FairGiveUp, "moved[read + 1] - falls[k]", "tostring(moved[read + 1] - falls[k])"},
	{FairGiveUp, "if moved[read] ~= waiter then", "if not moved[read] then"},
	{FairGiveUp, "            break\n", ""},
	{FairGiveUp, "if from then", "if front == 1 then"},
	{FairGiveUp, "        set_deadlines(timeouts, moved, n - 1)\n", ""},
	{FairGiveUp, "    redis.call('ZREM', timeouts, owner)\n", ""},
	{FairGiveUp, "    redis.call('LREM', queue, 0 - (places[owner] or 0), owner)\n", ""},
	{FairGiveUp, "'LREM', queue, 0 - (places[owner] or 0)", "'LREM', queue, -1"},
	{FairGiveUp, "in ipairs(leavers) do\n    redis", "in ipairs({ARGV[2]}) do\n    redis"},
	{FairGiveUp, "        wake(channel, waiter, publish, message)\n", ""},
	{FairGiveUp, "redis.call('EXISTS', lock) == 0", "true"},
	{FairGiveUp, "redis.call('EXISTS', lock) == 0", "fall and redis.call('EXISTS', lock) == 0"},
	{FairGiveUp, "redis.call('EXISTS', lock) == 0", "front == 1 and redis.call('EXISTS', lock) == 0"},
	{FairGiveUp, "local place, last = 0, 0", "local place, last = 1, 1"},
	{FairGiveUp, "channel .. ':' .. waiter", "channel"},
	{FairGiveUp, "waiter, message)\nend", "waiter, '1')\nend"},
	{FairGiveUp, "                return\n            end\n", "            end\n"},
	{FairGiveUp, "if not overdue(timeouts, waiter, now) then", "if true then"},
	{FairGiveUp, "            if not overdue", "            if overdue(timeouts, waiter, now) then redis.call('LPOP', queue) end\n            if not overdue"},
	{FairGiveUp, "return nil", "return 1"},
}

// costMutations show in long queues only, which the random plays have not, or in
// nothing but their cost.
var costMutations = slices.Concat(
	[]mutation{
		{FairGiveUp, "'ZRANGE', timeouts, from - #waiters - 1, -1", "'ZRANGE', timeouts, 0, #waiters - from"},
		{FairGiveUp, "    if moved then", "    if false then"},
		{FairGiveUp, "if from then", "if fall then"},
		{FairGiveUp, "~= 1 then\n        read = n", "> 1 then\n        read = n"},
		{FairGiveUp, "in ipairs(leavers) do\n        if", "in ipairs({ARGV[2]}) do\n        if"},
		{FairGiveUp, "(sought[waiter] and 1 or 0)", "1"},
		{FairGiveUp, "        if read < n and open > 0 then", "        if open > 0 then"},
		{FairGiveUp, "if read > 1000 then", "if read > 2000 then"},
		{FairGiveUp, "while read < n and open > 0 do", "while read < n and open == #leavers do"},
	},
	each([]*transport.Script{FairTry, FairAcquire}, "for i = 1, #waiting, 1000", "for i = 1, math.min(#waiting, 1000), 1000"),
	each([]*transport.Script{FairTry, FairAcquire}, "for i = 1, #waiting, 1000", "for i = 1, #waiting, 1002"),
	each([]*transport.Script{FairTry, FairAcquire}, "unpack(waiting, i, math.min(i + 999, #waiting))", "unpack(waiting)"),
	each([]*transport.Script{FairTry, FairAcquire, FairGiveUp}, "i + 999", "i + 997"),
	[]mutation{
		{FairGiveUp, "for i = 1, n, 1000", "for i = 1, math.min(n, 1000), 1000"},
		{FairGiveUp, "for i = 1, n, 1000", "for i = 1, n, 1002"},
		{FairGiveUp, "unpack(values, i, math.min(i + 999, n))", "unpack(values)"},
		{FairGiveUp, "unpack(values, i, math.min(i + 999, n))", "unpack(values, i, math.min(i + 999, #values))"},
	},
)

// noticed tries all checks until one fails, and brings that to the front: it is
// likely to notice the next mistake too.
func noticed[C any](checks []C, fails func(C) bool) bool {
	i := slices.IndexFunc(checks, fails)
	if i < 0 {
		return false
	}
	copy(checks, slices.Concat(checks[i:i+1], checks[:i]))
	return true
}

func TestFairVectorsNoticeMistakesInTheScripts(t *testing.T) {
	testlevel.All(t, "replays the vectors for each of 150 mistakes")
	testlevel.NoRace(t, testlevel.OneGoroutine)
	t.Parallel()
	s := newStage(t, redistest.Start(t))
	stories, long := fairStories(), fairLongStories()
	for _, m := range slices.Concat(fairMutations, costMutations, keepMutations, keepCostMutations) {
		s.mistake(m)
		differs := func(story fairStory) bool { return s.tellFair(story) != nil }
		require.True(t, noticed(stories, differs) || noticed(long, differs),
			"%s with %q in place of %q", m.script.Name(), m.new, m.old)
	}
}

// The model must notice them by itself: it is there for what no vector thinks of.
func TestFairModelNoticesMistakesInTheScripts(t *testing.T) {
	testlevel.All(t, "plays up to 2,000 games for each of 150 mistakes")
	testlevel.NoRace(t, testlevel.OneGoroutine)
	t.Parallel()
	for name, c := range map[string]struct {
		mutations []mutation
		plays     *rapid.Generator[[]fairOp]
	}{
		"taking":  {fairMutations, takingPlays},
		"keeping": {keepMutations, keepingPlays},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newQuietStage(t, redistest.Start(t))
			seeds := make([]int, 2000)
			for i := range seeds {
				seeds[i] = i
			}
			for _, m := range c.mutations {
				s.mistake(m)
				require.True(t, noticed(seeds, func(seed int) bool { return s.playFair(c.plays.Example(seed)) != nil }),
					"%s with %q in place of %q", m.script.Name(), m.new, m.old)
			}
		})
	}
}
