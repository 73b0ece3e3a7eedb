-- Evicts dead owners from the front of the queue of a fair lock, even while it is held.
--
-- It evicts the head of the queue as long as this is the next given owner and has the given deadline. A
-- deadline that has changed proves that the owner is alive. An evicted owner has not acquired the lock.
-- Therefore the part of its deadline that exceeds the lease and the keep of a heartbeat is subtracted
-- from all other deadlines, because they would otherwise grow with each death. However, the next
-- deadline stays at least the lease and the keep away.
--
-- All deadlines fall by the same time and keep their order. They are read and set in batches of a
-- thousand.
--
-- KEYS[1]       the lock: a hash of owner -> count
-- KEYS[2]       the queue: a list of waiting owners, the next one first
-- KEYS[3]       the timeouts: a sorted set of waiting owner -> deadline
-- KEYS[4]       the lock's channel
-- ARGV[1]       now: milliseconds since 1970, by the caller's clock
-- ARGV[2]       keep: that of a heartbeat, milliseconds
-- ARGV[3]       command to publish with: PUBLISH or SPUBLISH
-- ARGV[4]       message
-- ARGV[5..2n+4] n pairs, in the order of the queue: owner, and its deadline as a heartbeat or ZSCORE
--               returned it, or '' if it has none
-- Replies:  an array of the evicted owners
-- Effects:  evicted owners lose their places and deadlines. Each evicted deadline, minus the previous
--           reductions, lowers all other deadlines by the part that exceeds now + the lock's remaining
--           time + keep. The first deadline in the future never falls below this time
-- Messages: if the lock is free and an owner was evicted, the message on the channels of the first
--           waiters, up to the first one that is not overdue
-- Uses:     set_deadlines, wake_front
local lock, queue, timeouts, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, keep, publish, message = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local left = redis.call('PTTL', lock)
local evicted, wait = {}, 0
for i = 5, #ARGV, 2 do
    local head = redis.call('LINDEX', queue, 0)
    if head ~= ARGV[i] then
        break
    end
    local deadline = redis.call('ZSCORE', timeouts, head)
    if (deadline or '') ~= ARGV[i + 1] then
        break
    end
    redis.call('ZREM', timeouts, head)
    redis.call('LPOP', queue)
    evicted[#evicted + 1] = head
    if deadline then
        wait = wait + math.max(0, deadline - wait - now - math.max(0, left) - keep)
    end
end
if wait > 0 then
    local from, soonest = 0, nil
    repeat
        local scores = redis.call('ZRANGE', timeouts, from, from + 999, 'WITHSCORES')
        for i = 2, #scores, 2 do
            if tonumber(scores[i]) > now then
                soonest = scores[i]
                wait = math.min(wait, math.max(0, soonest - now - math.max(0, left) - keep))
                break
            end
        end
        from = from + 1000
    until soonest or #scores < 2000
    from = 0
    repeat
        local moved = redis.call('ZRANGE', timeouts, from, from + 999, 'WITHSCORES')
        for i = 1, #moved, 2 do
            moved[i], moved[i + 1] = moved[i + 1] - wait, moved[i]
        end
        set_deadlines(timeouts, moved, #moved)
        from = from + 1000
    until #moved < 2000
end
if #evicted > 0 and left == -2 then
    wake_front(queue, timeouts, channel, now, publish, message)
end
return evicted
