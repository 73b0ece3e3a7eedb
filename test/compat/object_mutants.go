package compat

import (
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/test/oracle"
)

// semaphoreMutants are as plainMutants.
var semaphoreMutants = []mutant{
	{"more permits are taken than there are", luasrc.SemaphoreAcquire, "free < tonumber(wanted)", "free <= 0"},
	{"one permit is taken for several", luasrc.SemaphoreAcquire, "redis.call('DECRBY', semaphore, wanted)", "redis.call('DECR', semaphore)"},
	{"a refused attempt takes permits", luasrc.SemaphoreAcquire, "return {-1, free}", "redis.call('DECRBY', semaphore, wanted) return {-1, free}"},
	{"an attempt makes a semaphore", luasrc.SemaphoreAcquire, "return {-1}", "redis.call('SET', semaphore, 0) return {-1}"},
	{"a release tells none", luasrc.SemaphoreAdd, "announce(channel, publish, tonumber(more), free)", ""},
	{"a release tells of other permits", luasrc.SemaphoreAdd, "announce(channel, publish, tonumber(more), free)", "announce(channel, publish, tonumber(more), free + 1)"},
	{"a release tells once", luasrc.SemaphoreAdd, "announce(channel, publish, tonumber(more), free)", "redis.call(publish, channel, free)"},
	{"added permits end the time to live", luasrc.SemaphoreAdd, "announce(", "redis.call('PERSIST', semaphore) announce("},
	{"a semaphore is made twice", luasrc.SemaphoreTrySet, "return 0", "redis.call('SET', semaphore, most) return 0"},
	{"a semaphore lives for ever", luasrc.SemaphoreTrySet, "redis.call('PEXPIRE', semaphore, ttl)", ""},
	{"a drained semaphore keeps one", luasrc.SemaphoreDrain, "redis.call('DECRBY', semaphore, free)", "redis.call('DECRBY', semaphore, free - 1)"},
	{"a drained semaphore is gone", luasrc.SemaphoreDrain, "redis.call('DECRBY', semaphore, free)", "redis.call('DEL', semaphore)"},
	{"a text is overwritten", luasrc.SemaphoreDrain, "redis.call('INCRBY', semaphore, 0)", "free = 0 redis.call('SET', semaphore, 0)"},
}

// permitMutants are as plainMutants.
var permitMutants = []mutant{
	{"one permit is taken for several ids", luasrc.PermitAcquire, "redis.call('DECRBY', semaphore, wanted)", "redis.call('DECR', semaphore)"},
	{"more permits are taken than there are, with ids", luasrc.PermitAcquire, "free and free >= wanted", "free and free > 0"},
	{"the first id alone has a lease", luasrc.PermitAcquire, "for i = 1, #ids, 16 do", "for i = 1, 1, 16 do"},
	{"an id is cut", luasrc.PermitAcquire, "string.sub(ids, i, i + 15)", "string.sub(ids, i, i + 14)"},
	{"a lease is in seconds", luasrc.PermitAcquire, "now + lease", "now + lease * 1000"},
	{"a permit never ends", luasrc.PermitAcquire, "now + lease", "922337203685477"},
	{"leases that are over are left", luasrc.PermitAcquire, "local freed = #over", "local freed = 0"},
	{"leases that are over are given back twice", luasrc.PermitAcquire, "redis.call('ZREM', permits, over[i])", ""},
	{"leases that are over are lost", luasrc.PermitAcquire, "free = redis.call('INCRBY', semaphore, freed)", "free = (free or 0) + freed"},
	{"the permits outlive the semaphore", luasrc.PermitAcquire, "redis.call('PEXPIRE', permits, left)", ""},
	{"a refusal does not say when the next lease ends", luasrc.PermitAcquire, "return {left, free,", "return {-1, free,"},
	{"a permit that is given back is lost", luasrc.PermitRelease, "announce(channel, publish, freed, redis.call('INCRBY', semaphore, freed))",
		"announce(channel, publish, freed, freed)"},
	{"a permit that is unknown is given back", luasrc.PermitRelease, "    if ends then", "    if ends or true then ends = ends or 0"},
	{"a permit is given back twice", luasrc.PermitRelease, "redis.call('ZREM', permits, id)", ""},
	{"a release tells none", luasrc.PermitRelease, "announce(channel, publish, freed, redis.call('INCRBY', semaphore, freed))",
		"redis.call('INCRBY', semaphore, freed)"},
	{"a release does not say that the lease was over", luasrc.PermitRelease, "over = over + 1", ""},
	{"a renewal makes leases shorter", luasrc.PermitRenew, "tonumber(before) < ends", "true"},
	{"a renewal does nothing", luasrc.PermitRenew, "redis.call('ZADD', permits, ends, shorter[k])", ""},
	{"a renewal brings a permit back", luasrc.PermitRenew, "renewed[i] = 0\n", "redis.call('ZADD', permits, ends, id)\n"},
	{"a question gives permits back", luasrc.PermitCount, "local exists = 0", "redis.call('ZREMRANGEBYSCORE', permits, 0, now) local exists = 0"},
	{"leases that are over count as taken", luasrc.PermitCount, "local over = redis.call('ZCOUNT', permits, 0, now)", "local over = 0"},
	{"permits that are taken do not count", luasrc.PermitSet, "most - free - redis.call('ZCOUNT', permits, 0, '+inf')", "most - free"},
}

// permitUnmeant are as plainUnmeant: random steps hardly meet the millisecond that shows it.
var permitUnmeant = []mutant{
	{"living leases are given back", luasrc.PermitAcquire, "'ZRANGEBYSCORE', permits, 0, now,", "'ZRANGEBYSCORE', permits, 0, now + 1,"},
}

// laterMutants are shown by operations that early releases do not have.
var laterMutants = map[string]func(oracle.Release) bool{
	"a semaphore lives for ever":                      oracle.Release.HasSemaphoreTTL,
	"one permit is taken for several ids":             oracle.Release.TakesManyPermits,
	"more permits are taken than there are, with ids": oracle.Release.TakesManyPermits,
	"the first id alone has a lease":                  oracle.Release.TakesManyPermits,
	"permits that are taken do not count":             oracle.Release.CountsPermits,
}

// latchMutants are as plainMutants.
var latchMutants = []mutant{
	{"a count is set twice", luasrc.LatchSet, "return 0", "redis.call('SET', latch, count) return 0"},
	{"a set latch tells none", luasrc.LatchSet, "redis.call(publish, channel, message)", ""},
	{"a set latch says that it is open", luasrc.LatchSet, "redis.call(publish, channel, message)", "redis.call(publish, channel, '0')"},
	{"a latch opens one too early", luasrc.LatchCountDown, "if left <= 0 then", "if left <= 1 then"},
	{"an open latch stays", luasrc.LatchCountDown, "redis.call('DEL', latch)", ""},
	{"an open latch tells none", luasrc.LatchCountDown, "redis.call(publish, channel, message)", ""},
	{"each count is told", luasrc.LatchCountDown, "if left == 0 then", "if true then"},
	{"a deleted latch tells none", luasrc.LatchDelete, "redis.call(publish, channel, message)", ""},
	{"a deleted latch is kept", luasrc.LatchDelete, "redis.call('DEL', latch)", ""},
}
