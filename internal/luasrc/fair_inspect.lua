-- Reads who holds a fair lock, how often and for how long, and who waits for it,
-- all at one moment. The dead are not removed.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the lock's channel; a waiter's own is that, a colon and the waiter
-- ARGV[1]   how many of the first in the queue to count the listeners of
-- ARGV[2]   subcommand of PUBSUB that counts them: NUMSUB or SHARDNUMSUB
-- Replies:  an array of the milliseconds that the lock has left, -1 when it never
--           expires, -2 when it is free; an array of owner, count, owner ...; the
--           queue; the timeouts, an array of owner, deadline, owner ...; and an
--           array of the first ones' listeners, in the order of the queue, shorter
--           when the user or the server cannot count
-- Effects:  none
-- Messages: none
local lock, queue, timeouts, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local waiters = redis.call('LRANGE', queue, 0, -1)
local listeners = {}
for i = 1, math.min(#waiters, tonumber(ARGV[1])) do
    local answer = redis.pcall('PUBSUB', ARGV[2], channel .. ':' .. waiters[i])
    if answer.err then
        break
    end
    listeners[i] = answer[2]
end
return {
    redis.call('PTTL', lock),
    redis.call('HGETALL', lock),
    waiters,
    redis.call('ZRANGE', timeouts, 0, -1, 'WITHSCORES'),
    listeners,
}
