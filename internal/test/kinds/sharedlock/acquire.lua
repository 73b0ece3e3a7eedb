-- Takes the lock for a reader while no writer has it, or for a writer while no holder has it.
-- KEYS: lock. ARGV: id with its role, lease in ms.
-- Reply: nil when granted, else the milliseconds that the holder in the way has left.
local id, lease = ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local holders = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #holders, 2 do
    if holders[i] ~= id and (string.sub(id, 1, 1) == 'w' or string.sub(holders[i], 1, 1) == 'w') then
        return math.max(holders[i + 1] - now, 0)
    end
end
redis.call('ZADD', KEYS[1], now + lease, id)
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), lease))
return nil
