package luasrc

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

func take(l string, n int64) vector {
	return onSemaphore("acquire", l, func(s *Permits, c *transport.Call) { s.Counter.Acquire(c, n) })
}

func more(l string, n int64) vector {
	return onSemaphore("add", l, func(s *Permits, c *transport.Call) { s.Add(c, n) })
}

func drain(l string) vector {
	return onSemaphore("drain", l, func(s *Permits, c *transport.Call) { s.Drain(c) })
}

func trySet(l string, n, ttl int64) vector {
	return onSemaphore("try set", l, func(s *Permits, c *transport.Call) { s.TrySet(c, n, ttl) })
}

func permit(l string, at int64, lease int64, ids ...string) vector {
	return onSemaphore("acquire permits", l, func(s *Permits, c *transport.Call) {
		s.Acquire(c, at, strings.Join(ids, ""), lease)
	})
}

func unpermit(l string, at int64, ids ...string) vector {
	return onSemaphore("release permits", l, func(s *Permits, c *transport.Call) { s.Release(c, at, strings.Join(ids, ""), IDSize) })
}

func setPermits(l string, n int64) vector {
	return onSemaphore("set permits", l, func(s *Permits, c *transport.Call) { s.Set(c, n) })
}

func countPermits(l string, at int64) vector {
	return onSemaphore("count permits", l, func(s *Permits, c *transport.Call) { s.Count(c, at) })
}

func TestSemaphoreVectorsNoticeMistakesInTheScripts(t *testing.T) {
	testlevel.All(t, "replays the vectors for each mistake")
	testlevel.NoRace(t, testlevel.OneGoroutine)
	t.Parallel()
	s := newQuietStage(t, redistest.Start(t))
	for _, m := range semaphoreMutations {
		s.mistake(m)
		noticed := slices.ContainsFunc(semaphoreScenarios, func(sc scenario) bool { return s.play(sc) != nil })
		require.True(t, noticed, "%s with %q in place of %q", m.script.Name(), m.new, m.old)
	}
}

var semaphoreMutations = []mutation{
	{PermitAcquire, "free and free >= wanted", "free and free > wanted"},
	{PermitAcquire, "free and free >= wanted", "free and free >= 1"},
	{PermitAcquire, "    redis.call('DECRBY', semaphore, wanted)\n", ""},
	{PermitAcquire, "redis.call('ZADD', permits, now + lease,", "redis.call('ZADD', permits, lease,"},
	{PermitAcquire, "for i = 1, #ids, 16 do", "for i = 1, 16, 16 do"},
	{PermitAcquire, "permits, 0, now, 'LIMIT'", "permits, 0, now - 1, 'LIMIT'"},
	{PermitAcquire, "    free = redis.call('INCRBY', semaphore, freed)\n", "    redis.call('INCRBY', semaphore, freed)\n"},
	{PermitAcquire, "    redis.call('ZREM', permits, over[i])\n", ""},
	{PermitAcquire, "        redis.call('PEXPIRE', permits, left)\n", ""},
	{PermitAcquire, "    announce(channel, publish, freed, free)\n", ""},
	{PermitAcquire, "announce(channel, publish, freed, free or 0)\n", ""},
	{PermitAcquire, "tonumber(first) < 922337203685477", "true"},
	{PermitAcquire, "tonumber(first) - now", "tonumber(first)"},
	{PermitAcquire, "free + redis.call('ZCOUNT', permits, 0, '+inf')", "free"},
	{PermitRelease, "available(semaphore)\nlocal freed", "local freed"},
	{PermitRelease, "        redis.call('ZREM', permits, id)\n", ""},
	{PermitRelease, "tonumber(ends) <= now", "tonumber(ends) < now - 8000"},
	{PermitRelease, "if freed > 0 then", "if true then"},
	{PermitRelease, "    announce(channel, publish, freed, redis.call('INCRBY', semaphore, freed))", "    redis.call('INCRBY', semaphore, freed)"},
	{PermitRelease, "return {freed, over}", "return {over, freed}"},
	{PermitRenew, "elseif tonumber(before) < ends then", "else"},
	{PermitRenew, "if not before then\n            renewed[i] = 0\n", "if not before then\n"},
	{PermitRenew, "renewed[i] * #shorter", "#shorter"},
	{PermitRenew, "redis.pcall", "redis.call"},
	{PermitRenew, "now + tonumber(ARGV[2 * i + 1])", "now + tonumber(ARGV[3])"},
	{PermitReplicate, "    if not ends then\n        return nil\n    end\n", "    ends = ends or 0\n"},
	{PermitReplicate, "redis.call('ZADD', permits, ends, id)", "redis.call('ZADD', permits, 1, id)"},
	{PermitCount, "(free or 0) + over", "(free or 0)"},
	{PermitCount, "'+inf') - over", "'+inf')"},
	{PermitCount, "exists = 1", "exists = 0"},
	{PermitSet, "most - free - redis.call('ZCOUNT', permits, 0, '+inf')", "most - free"},
	{PermitSet, "announce(channel, publish, more, free)\n", ""},
	{PermitSet, "announce(channel, publish, more, free)\n", "announce(channel, publish, free, free)\n"},
	{PermitInspect, "redis.call('ZCOUNT', permits, 0, '+inf')", "#redis.call('ZRANGE', permits, ARGV[1], ARGV[2])"},
	{SemaphoreAcquire, "free < tonumber(wanted)", "free <= tonumber(wanted)"},
	{SemaphoreAcquire, "    return {-1, free}\n", "    return {-1}\n"},
	{SemaphoreAcquire, "if not free then\n    return {-1}\nend\n", "free = free or 0\n"},
	{SemaphoreAdd, "announce(channel, publish, tonumber(more), free)\n", ""},
	{SemaphoreAdd, "if freed > 0 and free > 0 then", "if free > 0 then"},
	{SemaphoreAdd, "if freed > 0 and free > 0 then", "if freed > 0 then"},
	{SemaphoreAdd, "math.min(freed, free, 100)", "math.min(freed, 100)"},
	{SemaphoreAdd, "math.min(freed, free, 100)", "math.min(freed, free)"},
	{SemaphoreTrySet, "if redis.call('GET', semaphore) then\n    return 0\nend\n", ""},
	{SemaphoreTrySet, "    redis.call('PEXPIRE', semaphore, ttl)\n", ""},
	{SemaphoreTrySet, "announce(channel, publish, tonumber(most), tonumber(most))\n", ""},
	{SemaphoreDrain, "redis.call('DECRBY', semaphore, free)", "redis.call('SET', semaphore, 0)"},
	{SemaphoreDrain, "redis.call('DECRBY', semaphore, free)", "redis.call('DEL', semaphore)"},
	{SemaphoreDrain, "    redis.call('INCRBY', semaphore, 0)\n", ""},
}
