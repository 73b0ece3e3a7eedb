-- Takes owners that are proven dead out of the front of the queue of a fair lock,
-- also while the lock is held.
--
-- Only the first goes, then the next first, as long as each is who was given and
-- has the deadline that it was seen with: one that has done anything since is not
-- dead. Who goes so has not had its turn. What its deadline was beyond the end of
-- the lease, and of what a heartbeat keeps, is taken off the deadlines of all
-- others, or else those would grow with each death; but not so much that one of
-- them has less than that left, as could be where somebody behind was due earlier.
--
-- All deadlines fall by the same time, so they keep their order, and are read and set
-- a thousand at a time.
--
-- When the lock is free, those are told whom the next attempt can find in front:
-- the new head and, where it is dead, by this clock, all up to the first that is
-- not.
--
-- KEYS[1]       the lock: a hash of owner -> count
-- KEYS[2]       the queue: a list of the owners that wait, the next one first
-- KEYS[3]       the timeouts: a sorted set of waiting owner -> deadline, the time
--               from which it counts as dead
-- KEYS[4]       the lock's channel; a waiter's own is that, a colon and the waiter
-- ARGV[1]       now: milliseconds since 1970, by the caller's clock
-- ARGV[2]       keep: as a heartbeat's, milliseconds
-- ARGV[3]       command to publish with: PUBLISH or SPUBLISH
-- ARGV[4]       message
-- ARGV[5..2n+4] n pairs, in the order of the queue: owner, and its deadline as a
--               heartbeat or ZSCORE gives it, '' for none
-- Replies:  an array of the owners that were taken out
-- Effects:  each owner taken out loses its place and its deadline, all other
--           deadlines fall by what its own, less what those before it took off,
--           was later than now, the time that the lock has left, and keep, or less:
--           by what leaves that much to the first of them that has not come yet
-- Messages: when the lock is free and somebody was taken out, the message on the
--           channels of those in front, up to the first that is alive or has no
--           deadline
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
