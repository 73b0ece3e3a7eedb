-- Raises a counter of tokens that is below the least to it.
--
-- KEYS[1]   the counter: the last token that was given, a number
-- ARGV[1]   least: what the counter shall have reached
-- Replies:  1 when the counter was raised, 0 when it had reached the least
-- Effects:  the counter is at least that
-- Messages: none
local at = redis.call('INCRBY', KEYS[1], 0)
if at < tonumber(ARGV[1]) then
    redis.call('SET', KEYS[1], ARGV[1])
    return 1
end
return 0
