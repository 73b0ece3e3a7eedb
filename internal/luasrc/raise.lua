-- Raises a token counter to a minimum value.
--
-- KEYS[1]   the counter: the last token, a number
-- ARGV[1]   least: the minimum value
-- Replies:  1 if the counter was raised, else 0
-- Effects:  the counter is at least the minimum value
local at = redis.call('INCRBY', KEYS[1], 0)
if at < tonumber(ARGV[1]) then
    redis.call('SET', KEYS[1], ARGV[1])
    return 1
end
return 0
