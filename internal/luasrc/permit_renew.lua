-- Extends the leases of permits of many semaphores. It never shortens one, and never gives a permit to
-- an id without one: the permit expired and may belong to another owner.
--
-- Redis rejects ZADD as a script's first write if it is out of memory; the ZREM before it changes
-- nothing and is accepted.
--
-- A key of another type gets the reply 0; the other renewals go on.
--
-- KEYS[1..n]     the permits, for each semaphore: a sorted set of id -> end of lease; repeats allowed
-- ARGV[1]        now: milliseconds since 1970, by the caller's clock
-- ARGV[2..2n+1]  for each lock in turn: the ids of its permits, 16 bytes each, concatenated; their
--                lease, milliseconds
-- Replies:     an array of n numbers: 1 if all ids have permits, which have the lease now, else 0
-- Effects:     the permits answered with 1 end at the end of the lease from now on, or later
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
