-- Keeps the places of owners that wait in the queue of a fair lock, for all those
-- of one process together, and tells that process who stands in front.
--
-- A deadline can come although its owner lives: holders renew their leases, time
-- goes by, and who takes the lock takes its wait off the deadlines of all others.
-- So those given here are put off, if they must be, until they would outlive the
-- acquires of all before them. Whoever stands behind one that was put off stays at
-- least its own wait behind it. Waiters of other processes that are known to live
-- are kept in the same way: who looks after them may not be there, or be Redisson,
-- which does not. Only as the first they are kept for longer, and while the lock is
-- held: a free one is theirs to take.
--
-- What one of another process will take off is not known. Reckoned with is what the
-- caller has seen of it, but at least the wait of who sets none; and where it knows
-- nothing, what its deadline adds to that of the one before it, or that same wait
-- for the first.
--
-- Owners without a deadline are passed over, and where one stands several times
-- its first place counts. Nobody is removed: a deadline that has come, but was seen
-- by nobody, can still be put off.
--
-- A server without memory refuses ZADD as the first write of a script. Behind one that needs
-- none, which changes nothing, it does not: places are kept.
--
-- KEYS[1]       the lock: a hash of owner -> count
-- KEYS[2]       the queue: a list of the owners that wait, the next one first
-- KEYS[3]       the timeouts: a sorted set of waiting owner -> deadline, the time
--               from which it counts as dead
-- KEYS[4]       the lock's channel, unused: it is no key, and so a server whose slot moves
--               runs the script with all keys or not at all
-- ARGV[1]       now: milliseconds since 1970, by the caller's clock
-- ARGV[2]       keep: how long those given here shall not be dead, milliseconds
-- ARGV[3]       fair wait: the wait of who sets none, milliseconds
-- ARGV[4]       window: how many of the first in the queue to answer
-- ARGV[5]       n: how many of this process are given
-- ARGV[6..]     n pairs: owner, and the wait with which it was queued, milliseconds;
--               then what is known of others, for each: owner, the wait that it will
--               take off, milliseconds, and 1 if it lives, else 0
-- Replies:  an array of the milliseconds that the lock has left, -1 when it never
--           expires, -2 when it is free; an array of owner, deadline, owner ... of
--           the first in the queue, as they are now, '' for no deadline; an array
--           of the given owners that have no place or no deadline; and the length
--           of the queue
-- Effects:  the deadlines of given owners, of others that live, and of those behind
--           one that was put off become later, none becomes earlier; nothing else
--           changes
-- Messages: none
-- Uses:     set_deadlines
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local now, keep, fair = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local own = 2 * tonumber(ARGV[5]) + 5
local mine, known, lives = {}, {}, {}
for i = 6, own, 2 do
    mine[ARGV[i]] = tonumber(ARGV[i + 1])
end
for i = own + 1, #ARGV, 3 do
    known[ARGV[i]], lives[ARGV[i]] = math.max(fair, tonumber(ARGV[i + 1])), ARGV[i + 2] == '1'
end
local left = redis.call('PTTL', lock)
local waiters = redis.call('LRANGE', queue, 0, -1)
local scores = redis.call('ZRANGE', timeouts, 0, -1, 'WITHSCORES')
local deadlines = {}
for i = 1, #scores, 2 do
    deadlines[scores[i]] = tonumber(scores[i + 1])
end
local moved, n, ahead = {}, 0, 0
local before, after
for place, waiter in ipairs(waiters) do
    local old, given = deadlines[waiter], mine[waiter] or known[waiter]
    if old then
        local wait, deadline = given or fair, old
        if before then
            wait = given or math.max(0, math.min(fair, old - before))
            if after > before then
                deadline = math.max(deadline, after + wait)
            end
        end
        if mine[waiter] or lives[waiter] and place > 1 then
            deadline = math.max(deadline, now + keep + ahead)
        elseif lives[waiter] and left ~= -2 then
            deadline = math.max(deadline, now + fair)
        end
        if deadline > old then
            moved[n + 1], moved[n + 2] = deadline, waiter
            n = n + 2
        end
        ahead, before, after = ahead + wait, old, deadline
        deadlines[waiter], mine[waiter] = nil, nil
    end
end
if n > 0 then
    redis.call('ZREM', timeouts, '')
end
set_deadlines(timeouts, moved, n)
local front, missing = {}, {}
for i = 1, math.min(tonumber(ARGV[4]), #waiters) do
    front[2 * i - 1] = waiters[i]
    front[2 * i] = redis.call('ZSCORE', timeouts, waiters[i]) or ''
end
for i = 6, own, 2 do
    if mine[ARGV[i]] then
        missing[#missing + 1] = ARGV[i]
        mine[ARGV[i]] = nil
    end
end
return {left, front, missing, #waiters}
