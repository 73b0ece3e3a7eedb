-- Reads the holder of a fair lock, its TTL and its waiters at the same time. It does not remove overdue
-- waiters.
--
-- The cost depends on the length of the part that is read, not on that of the queue. Usually deadlines
-- are in the order of the queue, so that those of the part are adjacent. The others are read
-- individually. If the user may not run ZSCORE, the script reads the 5,000 deadlines on either side of
-- the part instead, and omits others. If the user may not run LLEN, it finds the length by a search.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the lock's channel
-- ARGV[1]   how many of the returned places have their subscribers counted
-- ARGV[2]   subcommand of PUBSUB that counts them: NUMSUB or SHARDNUMSUB
-- ARGV[3]   the first place to return, from 0
-- ARGV[4]   the last place to return, -1 for the end of the queue
-- Replies:  an array of the lock's remaining milliseconds, -1 if it does not expire, -2 if it is free; an
--           array of owner, count, owner ...; the part of the queue; an array of owner, deadline,
--           owner ... with its deadlines and possibly others; an array of the numbers of subscribers of
--           the first places, which is shorter if they cannot be counted; and the length of the queue
-- Uses:     length
local lock, queue, timeouts, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local first, last = tonumber(ARGV[3]), tonumber(ARGV[4])
local waiters = redis.call('LRANGE', queue, first, last)
local deadlines = redis.call('ZRANGE', timeouts, first, last, 'WITHSCORES')
local total = #waiters
if first > 0 or last >= 0 then
    if first > 0 or total > last then
        total = redis.pcall('LLEN', queue)
        if type(total) == 'table' then
            total = length(queue)
        end
    end
    local known, n = {}, #deadlines
    for i = 1, n, 2 do
        known[deadlines[i]] = true
    end
    for _, waiter in ipairs(waiters) do
        local deadline = not known[waiter] and redis.pcall('ZSCORE', timeouts, waiter)
        if type(deadline) == 'table' then
            deadlines = redis.call('ZRANGE', timeouts, math.max(0, first - 5000), last < 0 and last or last + 5000, 'WITHSCORES')
            break
        elseif deadline then
            deadlines[n + 1], deadlines[n + 2] = waiter, deadline
            n = n + 2
        end
    end
end
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
    deadlines,
    listeners,
    total,
}
