-- Reads who holds a fair lock, how often and for how long, and who waits for it,
-- all at one moment. The dead are not removed.
--
-- Of a long queue a part can be asked for, and costs by its own length. As a rule
-- deadlines are in the order of the queue, so those of a part stand together. Those
-- that do not are asked for one by one. For a user who may not (ZSCORE), the 5,000
-- deadlines on either side are read: one farther away is left out. For want of another
-- right, the queue is counted by a search for its end.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of the owners that wait, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline, the time
--           from which it counts as dead
-- KEYS[4]   the lock's channel; a waiter's own is that, a colon and the waiter
-- ARGV[1]   how many of the places that are told to count the listeners of
-- ARGV[2]   subcommand of PUBSUB that counts them: NUMSUB or SHARDNUMSUB
-- ARGV[3]   the first place to tell, 0 for the next one
-- ARGV[4]   the last place to tell, -1 for the end of the queue
-- Replies:  an array of the milliseconds that the lock has left, -1 when it never
--           expires, -2 when it is free; an array of owner, count, owner ...; the
--           part of the queue; its timeouts, an array of owner, deadline, owner ...,
--           others may be among them; an array of the first ones' listeners, in the
--           order of the queue, shorter when the user or the server cannot count;
--           and the length of the queue
-- Effects:  none
-- Messages: none
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
