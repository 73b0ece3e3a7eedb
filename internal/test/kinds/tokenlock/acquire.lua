-- Takes a free lock, with the next token.
-- KEYS: lock, token. ARGV: owner, lease in ms.
-- Reply: {token} when granted, else {the milliseconds that the holder has left, the holder}. The
-- local queue transfers a lock only while it has met no client of another kind as its holder.
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 then
    return {left, redis.call('HKEYS', KEYS[1])[1]}
end
redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {redis.call('INCR', KEYS[2])}
