-- Takes permits of a semaphore that only counts: all that are asked for, or none.
--
-- KEYS[1]   the semaphore: a number, how many permits are available
-- ARGV[1]   how many permits are asked for
-- Replies:  how many permits are available now, when they were taken; else an array of -1, and
--           of how many are available; of -1 alone when the semaphore does not exist
-- Effects:  when taken, so many fewer are available
-- Messages: none
-- Uses:     available
local semaphore, wanted = KEYS[1], ARGV[1]
local free = available(semaphore)
if not free then
    return {-1}
end
if free < tonumber(wanted) then
    return {-1, free}
end
return redis.call('DECRBY', semaphore, wanted)
