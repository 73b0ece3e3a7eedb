-- Frees those of many locks that the owner holds, as Release does. It may run late or twice.
--
-- KEYS[1..n]     the locks: hashes of owner -> count
-- KEYS[n+1..2n]  the locks' channels
-- ARGV[1]        owner
-- ARGV[2]        command to publish with: PUBLISH or SPUBLISH
-- ARGV[3]        message
-- Replies:       an array of n: 1 for a lock that is free now, and nil for a lock that the owner does not
--                hold or a key of another type
-- Effects:       the locks that the owner holds are deleted, regardless of the count
-- Messages:      the message on the channel of each lock that became free, in their order
local owner, publish, message = ARGV[1], ARGV[2], ARGV[3]
local n, freed = #KEYS / 2, {}
for i = 1, n do
    local count = redis.pcall('HGET', KEYS[i], owner)
    if type(count) == 'table' and not string.find(count.err, 'WRONGTYPE', 1, true) then
        return count
    end
    freed[i] = false
    if type(count) == 'string' then
        redis.call('DEL', KEYS[i])
        redis.call(publish, KEYS[n + i], message)
        freed[i] = 1
    end
end
return freed
