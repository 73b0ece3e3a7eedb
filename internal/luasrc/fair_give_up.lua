-- Removes owners that are no longer waiting from the queue of a fair lock. It removes one or more owners
-- of one process, with the same effect as sequential calls.
--
-- The deadlines of the waiters behind them fall by their waits. Usually these deadlines are the latest
-- ones and in the order of the queue, so that a few commands can change them. Otherwise, each deadline
-- is changed by its own command. A waiter that has no deadline after a failure gets one in the distant
-- past, so that it cannot block the queue forever. The queue is searched from its end, where most owners
-- leave it. Only the part of a long queue that contains all of the owners is read, in batches of a
-- thousand places. Owners without a deadline are not searched for, because they are not queued. If the
-- numbers of places and deadlines differ, the whole queue is read, because the keys were damaged and an
-- owner may have several places.
--
-- A removed owner may have been notified that the lock is free. Therefore, if the lock is free, this
-- notifies the new head of the queue and, if it is overdue, the waiters up to the first one that is not.
--
-- If Redis is out of memory, it rejects ZADD and ZINCRBY as the first write of a script. It accepts the
-- ZREM before them, which does not change anything.
--
-- KEYS[1]   the lock: a hash of owner -> count
-- KEYS[2]   the queue: a list of waiting owners, the next one first
-- KEYS[3]   the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]   the lock's channel
-- ARGV[1]   now: milliseconds since 1970, by the caller's clock
-- ARGV[2]   owner
-- ARGV[3]   wait with which the owner was queued, milliseconds
-- ARGV[4]   command to publish with: PUBLISH or SPUBLISH
-- ARGV[5]   message
-- ARGV[6..] more owners, each followed by its wait
-- Replies:  nil
-- Effects:  the owners lose their places and deadlines. For each place behind the first place of an owner,
--           the deadline of the waiter there falls by the owner's wait, or from 0 if it has no deadline
-- Messages: if the lock is free, the message on the channels of the first waiters, up to the first one
--           that is not overdue
-- Uses:     length, set_deadlines, wake_front
local lock, queue, timeouts, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, publish, message = tonumber(ARGV[1]), ARGV[4], ARGV[5]
local leavers, waits = {ARGV[2]}, {[ARGV[2]] = tonumber(ARGV[3])}
for i = 6, #ARGV, 2 do
    if not waits[ARGV[i]] then
        leavers[#leavers + 1], waits[ARGV[i]] = ARGV[i], tonumber(ARGV[i + 1])
    end
end
local waiters = redis.call('LRANGE', queue, -1000, -1)
if #waiters == 1000 then
    local n, read, sought, open = length(queue), 0, {}, 0
    if #redis.call('ZRANGE', timeouts, n - 1, n) ~= 1 then
        read = n
    end
    for _, owner in ipairs(leavers) do
        if redis.call('ZSCORE', timeouts, owner) then
            sought[owner], open = true, open + 1
        end
    end
    while read < n and open > 0 do
        for _, waiter in ipairs(waiters) do
            open = open - (sought[waiter] and 1 or 0)
        end
        read = read + 1000
        if read < n and open > 0 then
            waiters = redis.call('LRANGE', queue, -read - 1000, -read - 1)
        end
    end
    if read > 1000 then
        waiters = redis.call('LRANGE', queue, -read, -1)
    end
end
local stay, falls, places = {}, {}, {}
local fall, front, from
for place, waiter in ipairs(waiters) do
    local wait = waits[waiter]
    if not wait then
        stay[#stay + 1], falls[#falls + 1] = waiter, fall or 0
        from = from or fall and place
        front = front or from and #stay
    else
        fall = (fall or 0) + (places[waiter] and 0 or wait)
        places[waiter] = (places[waiter] or 0) + 1
    end
end
if from then
    local moved = redis.call('ZRANGE', timeouts, from - #waiters - 1, -1, 'WITHSCORES')
    local n, k = 1, front
    for i = from, #waiters do
        local waiter, read = waiters[i], 2 * (i - from) + 1
        if moved[read] ~= waiter then
            moved = nil
            break
        end
        if not waits[waiter] then
            moved[n], moved[n + 1] = moved[read + 1] - falls[k], waiter
            n, k = n + 2, k + 1
        end
    end
    redis.call('ZREM', timeouts, '')
    if moved then
        set_deadlines(timeouts, moved, n - 1)
    else
        for i = front, #stay do
            redis.call('ZINCRBY', timeouts, -falls[i], stay[i])
        end
    end
end
for _, owner in ipairs(leavers) do
    redis.call('ZREM', timeouts, owner)
    redis.call('LREM', queue, 0 - (places[owner] or 0), owner)
end
if redis.call('EXISTS', lock) == 0 then
    wake_front(queue, timeouts, channel, now, publish, message)
end
return nil
