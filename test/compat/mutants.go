package compat

import "github.com/redlatch/redlatch/internal/luasrc"

// plainMutants are noticed by the recorded vectors, which have what ours must do, and by
// steps against a live Redisson, which show what it must not.
var plainMutants = []mutant{
	{"acquire forgets the lease on entering again", luasrc.Acquire, "redis.call('PEXPIRE', lock, lease)",
		"if redis.call('PTTL', lock) < 0 then redis.call('PEXPIRE', lock, lease) end"},
	{"acquire answers 0", luasrc.Acquire, "return nil", "return 0"},
	{"acquire answers seconds", luasrc.Acquire, "redis.call('PTTL', lock)", "redis.call('TTL', lock)"},
	{"release deletes the field only", luasrc.Release, "redis.call('DEL', lock)", "redis.call('HDEL', lock, owner)"},
	{"release sends no message", luasrc.Release, "redis.call(publish, channel, message)", ""},
	{"release sends another message", luasrc.Release, "channel, message)", "channel, '1')"},
	{"release keeps the time to live", luasrc.Release, "redis.call('PEXPIRE', lock, lease)", ""},
	{"release answers 1 to a foreign owner", luasrc.Release, "return nil", "return 1"},
	{"re-entry takes a free lock", luasrc.Reenter, "return nil", "redis.call('HSET', lock, owner, target) return 1"},
	{"re-entry counts one up", luasrc.Reenter, "redis.call('HSET', lock, owner, target)", "redis.call('HINCRBY', lock, owner, 2)"},
	{"re-entry counts nothing", luasrc.Reenter, "redis.call('HSET', lock, owner, target)", ""},
	{"re-entry lowers the count", luasrc.Reenter, "tonumber(count) < target", "true"},
	{"re-entry keeps the time to live", luasrc.Reenter, "redis.call('PEXPIRE', lock, lease)", ""},
	{"shared release leaves no latch", luasrc.ReleaseShared, "redis.call('SET', latch, free, 'PX', ttl)", ""},
	{"shared release leaves a latch for ever", luasrc.ReleaseShared, ", 'PX', ttl", ""},
	{"shared release leaves a latch for another time", luasrc.ReleaseShared, "'PX', ttl", "'PX', ttl - 1000"},
	{"shared release leaves another latch", luasrc.ReleaseShared, "'SET', latch, free", "'SET', latch, 1"},
	{"shared release has its latch under another name", luasrc.ReleaseShared, "'SET', latch", "'SET', channel"},
	{"shared release does not look at its latch", luasrc.ReleaseShared, "if before then", "if false then"},
	{"shared release leaves a latch when nothing was done", luasrc.ReleaseShared, "return nil",
		"redis.call('SET', latch, 0, 'PX', ttl) return nil"},
	{"shared release keeps the time to live", luasrc.ReleaseShared, "redis.call('PEXPIRE', lock, lease)", ""},
	{"shared release deletes the field only", luasrc.ReleaseShared, "redis.call('DEL', lock)", "redis.call('HDEL', lock, owner)"},
	{"shared release sends no message", luasrc.ReleaseShared, "redis.call(publish, channel, message)", ""},
	{"force release publishes nothing", luasrc.ForceRelease, "redis.call(publish, channel, message)", ""},
	{"force release answers 1 for a free lock", luasrc.ForceRelease, "return 0", "return 1"},
	{"renewal makes foreign locks longer", luasrc.Renew, "held == 1", "redis.call('EXISTS', KEYS[i]) == 1"},
	{"renewal does nothing", luasrc.Renew, "redis.call('PEXPIRE', KEYS[i], lease)", ""},
}

// fencedMutants are as plainMutants.
var fencedMutants = []mutant{
	{"a grant is counted twice", luasrc.FencedAcquire, "redis.call('INCR', counter)", "redis.call('INCRBY', counter, 2)"},
	{"a grant answers the token before", luasrc.FencedAcquire, "return token\nend\nreturn", "return token - 1\nend\nreturn"},
	{"a large token loses digits", luasrc.FencedAcquire, "token >= 9007199254740992", "false"},
	{"a grant gives the counter a time to live", luasrc.FencedAcquire, "redis.call('PEXPIRE', lock, lease)",
		"redis.call('PEXPIRE', lock, lease) redis.call('PEXPIRE', counter, lease)"},
	{"a refusal is counted", luasrc.FencedAcquire, "return {redis.call('PTTL', lock)", "redis.call('INCR', counter) return {redis.call('PTTL', lock)"},
	{"a re-entry is not counted", luasrc.FencedReenter, "redis.call('INCR', counter)", "tonumber(redis.call('GET', counter) or 1)"},
	{"a re-entry of a lock that is gone is counted", luasrc.FencedReenter, "return nil\nend\nlocal token",
		"redis.call('INCR', counter) return nil\nend\nlocal token"},
	{"a re-entry counts no hold", luasrc.FencedReenter, "reenter(lock, owner, lease, target)\nreturn", "return"},
}

// plainUnmeant do without a difference that is meant. Only the vectors notice.
var plainUnmeant = []mutant{
	{"re-entry makes the time to live shorter", luasrc.Reenter, "left < tonumber(lease)", "true"},
	{"re-entry makes a lock mortal", luasrc.Reenter, "left >= 0 and left <", "left <"},
}
