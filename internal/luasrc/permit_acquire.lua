-- Acquires all the permits that are requested, or none. It first frees up to a thousand permits whose
-- leases have expired.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the permits: a sorted set of id -> end of lease, ms since 1970, 922337203685477 for never
-- KEYS[3]   the channel of the semaphore
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   ids: 16 bytes for each permit, concatenated
-- ARGV[3]   lease, milliseconds
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- Replies:  if acquired, the number of permits that are still available. Otherwise, an array of the
--           milliseconds until the next lease ends, or -1 if none does; the number of available permits;
--           and the number of available and acquired permits together. If the semaphore does not exist,
--           the array contains only the first number
-- Effects:  expired permits become available; if acquired, the ids have leases, fewer permits are
--           available, and the key of the permits gets the semaphore's TTL
-- Messages: those of announce, if permits were freed and have not been acquired
-- Uses:     available, announce
local semaphore, permits, channel = KEYS[1], KEYS[2], KEYS[3]
local now, ids, lease, publish = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
local wanted = #ids / 16
local free = available(semaphore)
local over = redis.call('ZRANGEBYSCORE', permits, 0, now, 'LIMIT', 0, 1000)
local freed = #over
if freed > 0 then
    free = redis.call('INCRBY', semaphore, freed)
end
for i = 1, freed do
    redis.call('ZREM', permits, over[i])
end
if free and free >= wanted then
    free = free - wanted
    redis.call('DECRBY', semaphore, wanted)
    for i = 1, #ids, 16 do
        redis.call('ZADD', permits, now + lease, string.sub(ids, i, i + 15))
    end
    local left = redis.call('PTTL', semaphore)
    if left > 0 then
        redis.call('PEXPIRE', permits, left)
    end
    announce(channel, publish, freed, free)
    return free
end
announce(channel, publish, freed, free or 0)
local left, first = -1, redis.call('ZRANGE', permits, 0, 0, 'WITHSCORES')[2]
if first and tonumber(first) < 922337203685477 then
    left = math.max(0, tonumber(first) - now)
end
if not free then
    return {left}
end
return {left, free, free + redis.call('ZCOUNT', permits, 0, '+inf')}
