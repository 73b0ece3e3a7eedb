-- Extends the leases of permits of many semaphores. It never shortens a lease, and it never gives a permit
-- to an id that has none, because its permit has expired and may belong to another owner.
--
-- If Redis is out of memory, it rejects ZADD as the first write of a script. It accepts the ZREM before
-- it, which does not change anything.
--
-- For a key of another type, the reply is 0, and the other renewals continue.
--
-- KEYS[1..n]     the permits, for each semaphore: a sorted set of id -> end of lease; it may appear several
--                times
-- ARGV[1]        now: milliseconds since 1970, by the caller's clock
-- ARGV[2..2n+1]  for each lock, in the same order: the ids of its permits, 16 bytes each, concatenated; and
--                their lease in milliseconds
-- Replies:     an array of n numbers: 1 if all ids have permits and these have been extended, else 0
-- Effects:     if the reply is 1, the permits expire a lease after now or later
local now = tonumber(ARGV[1])
local renewed = {}
for i = 1, #KEYS do
    local permits, ids, ends = KEYS[i], ARGV[2 * i], now + tonumber(ARGV[2 * i + 1])
    local shorter = {}
    renewed[i] = 1
    for k = 1, #ids, 16 do
        local id = string.sub(ids, k, k + 15)
        local before = redis.pcall('ZSCORE', permits, id)
        if type(before) == 'table' then
            if not string.find(before.err, 'WRONGTYPE', 1, true) then
                return before
            end
            before = false
        end
        if not before then
            renewed[i] = 0
        elseif tonumber(before) < ends then
            shorter[#shorter + 1] = id
        end
    end
    if #shorter > 0 then
        redis.call('ZREM', permits, '')
    end
    for k = 1, renewed[i] * #shorter do
        redis.call('ZADD', permits, ends, shorter[k])
    end
end
return renewed
