-- Renews holds, each under a key of its own.
-- KEYS: locks. ARGV: for each of them the id and the lease in ms.
-- Reply: for each 1 when it holds the lock, 0 when not.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = {}
for i, key in ipairs(KEYS) do
    local id, lease = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
    held[i] = 0
    if redis.call('ZSCORE', key, id) then
        redis.call('ZADD', key, 'XX', now + lease, id)
        redis.call('PEXPIRE', key, math.max(redis.call('PTTL', key), lease))
        held[i] = 1
    end
end
return held
