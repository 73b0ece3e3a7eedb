-- Releases permits. It may run late or twice, because it skips ids that have no permit.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- KEYS[2]   the permits: a sorted set of id -> end of lease, ms since 1970
-- KEYS[3]   the channel of the semaphore
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   ids: of the permits, concatenated
-- ARGV[3]   size: the length of each id in bytes, 16 unless the permits were created manually
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- Replies:  an array of the number of released permits, and the number of those that had expired
-- Effects:  the ids lose their permits, which become available
-- Messages: those of announce, if permits were released
-- Uses:     available, announce
local semaphore, permits, channel = KEYS[1], KEYS[2], KEYS[3]
local now, ids, size, publish = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
available(semaphore)
local freed, over = 0, 0
for i = 1, #ids, size do
    local id = string.sub(ids, i, i + size - 1)
    local ends = redis.call('ZSCORE', permits, id)
    if ends then
        redis.call('ZREM', permits, id)
        freed = freed + 1
        if tonumber(ends) <= now then
            over = over + 1
        end
    end
end
if freed > 0 then
    announce(channel, publish, freed, redis.call('INCRBY', semaphore, freed))
end
return {freed, over}
