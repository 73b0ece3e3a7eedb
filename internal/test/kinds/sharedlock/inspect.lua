-- Reads the lock. KEYS: lock. Reply: the milliseconds that it has left, then the ids of its holders.
local all = redis.call('ZRANGE', KEYS[1], 0, -1)
table.insert(all, 1, redis.call('PTTL', KEYS[1]))
return all
