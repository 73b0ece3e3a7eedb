-- Keeps the waiters of one process in the queue of a fair lock, and reads the front of the queue.
--
-- The deadline of a waiter can pass although it is alive, because holders renew their leases and each
-- acquisition lowers all other deadlines by the new holder's wait. Therefore this raises the given
-- deadlines so far that they do not pass before all waiters ahead have acquired the lock. A waiter
-- behind a raised deadline stays at least its own wait behind it. Waiters in other processes that are
-- known to be alive are kept in the same way, because their process may run Redisson, which does not
-- send heartbeats. If such a waiter is the first one, it is kept for the fair wait, and only while the
-- lock is held, because it should acquire a free lock.
--
-- The wait of a waiter in another process is not stored. The script assumes the wait that the caller has
-- observed, but at least the fair wait. If the caller has not observed it, the script assumes the
-- distance from the preceding deadline, but at most the fair wait or the longest wait in this process.
-- For the first waiter, it assumes this maximum.
--
-- The script skips owners without a deadline, and counts only the first place of each owner. It does not
-- remove waiters, because an overdue waiter that is still queued can be kept.
--
-- If Redis is out of memory, it rejects ZADD as the first write of a script. It accepts the ZREM before
-- it, which does not change anything.
--
-- KEYS[1]       the lock: a hash of owner -> count
-- KEYS[2]       the queue: a list of waiting owners, the next one first
-- KEYS[3]       the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]       the lock's channel, unused: it never exists, so the script does not run while its slot is moved
-- ARGV[1]       now: milliseconds since 1970, by the caller's clock
-- ARGV[2]       keep: the minimum time for which the given owners are kept, milliseconds
-- ARGV[3]       fair wait: the wait of an owner that does not set one, milliseconds
-- ARGV[4]       window: the number of places to return
-- ARGV[5]       n: the number of given owners in this process
-- ARGV[6..]     n pairs: owner, and the wait with which it was queued, milliseconds; then, for each known
--               owner in another process: owner, its assumed wait, milliseconds, and 1 if alive, else 0
-- Replies:  an array of the lock's remaining milliseconds, -1 if it does not expire, -2 if it is free; an
--           array of owner, deadline, owner ... for the front of the queue, with '' for no deadline; an
--           array of the given owners that have no place or no deadline; and the length of the queue
-- Effects:  raises the deadlines of the given owners, of other owners that are alive, and of the waiters
--           behind a raised deadline; nothing else changes
-- Uses:     set_deadlines
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local now, keep, fair = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local own = 2 * tonumber(ARGV[5]) + 5
local mine, known, lives, most = {}, {}, {}, fair
for i = 6, own, 2 do
    mine[ARGV[i]] = tonumber(ARGV[i + 1])
    most = math.max(most, mine[ARGV[i]])
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
        local wait, deadline = given or most, old
        if before then
            wait = given or math.max(0, math.min(most, old - before))
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
