package compat

import (
	"slices"

	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// inEach is one mistake in several scripts.
func inEach(does, before, after string, all ...*transport.Script) []mutant {
	var mutants []mutant
	for _, script := range all {
		mutants = append(mutants, mutant{script.Name() + " " + does, script, before, after})
	}
	return mutants
}

// fairPrunes are mistakes in removing overdue waiters.
func fairPrunes(all ...*transport.Script) []mutant {
	return slices.Concat(
		inEach("prunes a millisecond late", "tonumber(deadline) <= now", "tonumber(deadline) < now", all...),
		inEach("asks the server's clock", "tonumber(ARGV[1])", "redis.call('TIME')[1] * 1000", all...),
		inEach("leaves the dead", "while head and overdue(timeouts, head, now) do", "while false do", all...),
		inEach("leaves the deadlines of the dead", "        redis.call('ZREM', timeouts, head)\n", "", all...),
	)
}

// fairTakes are mistakes in taking the lock, or entering it again.
func fairTakes(all ...*transport.Script) []mutant {
	return slices.Concat(
		inEach("takes it out of turn", "(not head or head == owner)", "true", all...),
		inEach("leaves itself in the queue", "        redis.call('LPOP', queue)\n        redis.call('ZREM', timeouts, owner)",
			"        redis.call('ZREM', timeouts, owner)", all...),
		inEach("leaves its deadline", "        redis.call('ZREM', timeouts, owner)\n", "", all...),
		inEach("forgets to bring the deadlines forward", "'ZINCRBY', timeouts, -by", "'ZINCRBY', timeouts, 0", all...),
		inEach("brings a deadline too few forward", "'ZRANGE', timeouts, 0, -1", "'ZRANGE', timeouts, 1, -1", all...),
		inEach("sets no lease", "        redis.call('HSET', lock, owner, 1)\n        redis.call('PEXPIRE', lock, lease)\n",
			"        redis.call('HSET', lock, owner, 1)\n", all...),
		inEach("counts a re-entry as the first", "'HINCRBY', lock, owner, 1", "'HSET', lock, owner, 1", all...),
		inEach("answers with another holder", "redis.pcall('HKEYS', lock)[1] or ''", "''", all...),
	)
}

var fairReleases = []*transport.Script{luasrc.FairRelease, luasrc.FairReleaseShared, luasrc.FairForceRelease}

// fairMutants are noticed by the recorded vectors, which have what ours must do, and by
// steps against a live Redisson, which show what it must not.
var fairMutants = slices.Concat(
	fairPrunes(luasrc.FairAcquire, luasrc.FairRelease),
	fairTakes(luasrc.FairAcquire),
	inEach("wakes all waiters", "channel .. ':' .. waiter", "channel", fairReleases...),
	inEach("wakes no waiter", "if head then", "if false then", luasrc.FairRelease, luasrc.FairForceRelease),
	[]mutant{
		{"queues no owner", luasrc.FairAcquire, "queued = redis.call('RPUSH', queue, owner)", "queued = 1"},
		{"queues at the head", luasrc.FairAcquire, "'RPUSH'", "'LPUSH'"},
		{"forgets the wait in a deadline", luasrc.FairAcquire, "left + wait + now", "left + now"},
		{"counts a deadline from the lease, ignoring the queue", luasrc.FairAcquire, "if deadline then", "if false then"},
		{"counts a deadline from the first, not the last", luasrc.FairAcquire, "'LINDEX', queue, -1", "'LINDEX', queue, 0"},
		{"renews the deadline of an owner that asks again", luasrc.FairAcquire, "left = math.max(0, left)",
			"left = math.max(0, left) redis.call('ZADD', timeouts, left + wait + now, owner)"},
		{"says that an owner that asks again is queued now", luasrc.FairAcquire, "math.max(0, left)", "math.max(0, left) queued = 1"},
		{"says another first", luasrc.FairAcquire, "head or owner, queued", "owner, queued"},
		{"queues an owner that only tries", luasrc.FairTry, "if tell then", "redis.call('RPUSH', queue, owner) if tell then"},
		{"frees a lock that is another's", luasrc.FairRelease, "    return nil", "    redis.call('DEL', lock)"},
		{"keeps the time to live", luasrc.FairRelease, "redis.call('PEXPIRE', lock, lease)", ""},
		{"leaves no latch", luasrc.FairReleaseShared, "redis.call('SET', latch, outcome, 'PX', ttl)", ""},
		{"leaves a latch for ever", luasrc.FairReleaseShared, ", 'PX', ttl", ""},
		{"leaves a latch for another time", luasrc.FairReleaseShared, "'PX', ttl", "'PX', ttl - 1000"},
		{"does not look at its latch", luasrc.FairReleaseShared, "if before then", "if false then"},
		{"wakes a waiter, though it keeps a hold", luasrc.FairReleaseShared, "outcome > 0 and head", "head"},
		{"deletes the field only", luasrc.FairReleaseShared, "redis.call('DEL', lock)", "redis.call('HDEL', lock, owner)"},
		{"answers 1 for a free lock", luasrc.FairForceRelease, "return 0", "return 1"},
		{"takes a lock that is gone", luasrc.FairReenter, "        return nil", "        redis.call('HSET', lock, owner, 1) return 1"},
		{"counts nothing", luasrc.FairReenter, "redis.call('HSET', lock, owner, target)", ""},
		{"stays in the queue", luasrc.FairGiveUp, "redis.call('LREM', queue, 0 - (places[owner] or 0), owner)", ""},
		{"leaves one of two places", luasrc.FairGiveUp, "'LREM', queue, 0 - (places[owner] or 0)", "'LREM', queue, -1"},
		{"leaves its deadline", luasrc.FairGiveUp, "redis.call('ZREM', timeouts, owner)", ""},
		{"brings no deadline forward", luasrc.FairGiveUp, "if from then", "if false then"},
		{"brings those in front forward, too", luasrc.FairGiveUp, "ZINCRBY', timeouts, -falls[i], stay[i]",
			"ZINCRBY', timeouts, -falls[i], stay[1]"},
		{"brings them forward by something else", luasrc.FairGiveUp, "moved[read + 1] - falls[k]", "moved[read + 1] - falls[k] + 1"},
		{"wakes a waiter of a held lock", luasrc.FairGiveUp, "redis.call('EXISTS', lock) == 0", "true"},
	},
)

// fairUnmeant are shown to the vectors alone: mistakes that others make elsewhere,
// and scripts without a difference that is meant, be it one from old releases.
var fairUnmeant = slices.Concat(fairPrunes(luasrc.FairTry, luasrc.FairReenter, luasrc.FairReleaseShared, luasrc.FairForceRelease), fairTakes(luasrc.FairTry), []mutant{
	{"removes a first waiter without a deadline", luasrc.FairTry, "return deadline and", "return not deadline or"},
	{"removes a first waiter without a deadline", luasrc.FairAcquire, "return deadline and", "return not deadline or"},
	{"says what is left of a lock that never expires", luasrc.FairAcquire, "math.max(0, left)", "left"},
	{"reports the release of a free lock", luasrc.FairRelease, "outcome = 2", "outcome = 1"},
	{"reports the release of a free lock, for all", luasrc.FairReleaseShared, "outcome = 2", "outcome = 1"},
	{"makes the time to live shorter", luasrc.FairReenter, "left < tonumber(lease)", "true"},
	{"makes a lock mortal", luasrc.FairReenter, "left >= 0 and left <", "left <"},
	{"wakes no waiter of a free lock", luasrc.FairGiveUp, "redis.call('EXISTS', lock) == 0", "false"},
	{"passes a free lock on to the dead alone", luasrc.FairGiveUp, "if not overdue(", "if true or overdue("},
})
