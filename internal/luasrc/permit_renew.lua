-- Extends the leases of permits of many semaphores.
--
-- A renewal never makes a lease shorter, and gives no permit to an id that has none: its lease was over, and the
-- permit may be another's.
--
-- A server without memory refuses ZADD as the first write of a script. Behind one that needs none,
-- which changes nothing, it does not: the holds go on.
--
-- A key that is no set of permits any more, because something else was stored under it, answers
-- 0 for itself: it must not cost the others their renewal.
--
-- KEYS[1..n]     the permits, for each semaphore: a sorted set of id -> when the permit's lease
--                ends; one may stand there more than once
-- ARGV[1]        now: milliseconds since 1970, by the caller's clock
-- ARGV[2..2n+1]  for each lock in turn: the ids of its permits, 16 bytes each, one behind the
--                other; their lease, milliseconds
-- Replies:     an array of n numbers: 1 when all its ids have permits, and the lease holds, else 0
-- Effects:     the leases of the permits answered with 1 end when the lease from now on does,
--              or later
-- Messages:    none
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
