-- Keeps the places of one process's waiters in the queue of a fair lock, and reads the front of it.
--
-- A waiter's deadline can come although it is alive: holders renew their leases, and each acquisition
-- takes its wait off all other deadlines. Therefore this raises the given deadlines to where they
-- survive the acquisitions of all waiters before them. A waiter behind a raised one stays at least its
-- wait behind it. Waiters of other processes that are known to be alive are kept in the same way: their
-- process may be Redisson, which does not send heartbeats. The first of them is kept for the fair wait,
-- and only while the lock is held: it should acquire a free lock.
--
-- The wait of another process's waiter is not stored. The script assumes the wait that the caller has
-- observed, and at least the fair wait; without an observation, the distance to the preceding deadline,
-- or the fair wait for the first.
--
-- It skips owners without a deadline, and counts only the first place of an owner. It does not remove
-- waiters: an overdue waiter that is still queued can be kept.
--
-- Redis rejects ZADD as a script's first write if it is out of memory; the ZREM before it changes
-- nothing and is accepted.
--
-- KEYS[1]       the lock: a hash of owner -> count
-- KEYS[2]       the queue: a list of waiting owners, the next one first
-- KEYS[3]       the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]       the lock's channel, unused: it never exists, so the script does not run while its slot moves
-- ARGV[1]       now: milliseconds since 1970, by the caller's clock
-- ARGV[2]       keep: the least time to keep the given owners, milliseconds
-- ARGV[3]       fair wait: the wait of an owner that sets none, milliseconds
-- ARGV[4]       window: how many places to return
-- ARGV[5]       n: how many owners of this process are given
-- ARGV[6..]     n pairs: owner, and the wait with which it was queued, milliseconds; then for each known
--               owner of another process: owner, its assumed wait, milliseconds, and 1 if alive, else 0
-- Replies:  an array of the lock's remaining milliseconds, -1 without expiry, -2 if free; an
--           array of owner, deadline, owner ... of the front, '' for no deadline; an array of the given
--           owners without place or deadline; and the length of the queue
-- Effects:  the deadlines of the given owners, of others that are alive, and of the waiters behind a
--           raised one rise; nothing else changes
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
