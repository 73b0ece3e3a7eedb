-- Takes a free fair lock when nobody is queued before the owner, or enters one
-- again that the owner holds already. It never queues the owner.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the lock's channel, unused: it is no key, and so a server whose slot moves
--           runs the script with all keys or not at all
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   wait of the owner, milliseconds
-- ARGV[4]   lease, milliseconds
-- ARGV[5]   given: a refusal says more; left out: it is 1
-- Replies:  nil when the owner holds the lock now, else 1. Where more is asked for,
--           an array of the milliseconds that the lock has left, -1 when it never
--           expires and -2 when it is free, and the holder's owner, '' when there
--           is none or the user may not ask (HKEYS)
-- Effects:  the queue loses its dead, up to the first owner that is alive or has
--           no deadline; when taken, it loses the owner too, all other deadlines
--           fall by the wait, the count is 1 and the time to live the lease; when
--           entered again, the count is one higher and the time to live the lease
-- Messages: none
-- Uses:     prune, take
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local now, owner, wait, lease, tell = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local head = prune(queue, timeouts, now)
if take(lock, queue, timeouts, head, owner, wait, lease) then
    return nil
end
if tell then
    return {redis.call('PTTL', lock), redis.pcall('HKEYS', lock)[1] or ''}
end
return 1
