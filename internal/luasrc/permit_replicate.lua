-- Writes the leases of permits once more as they are, so that replicas can be waited for.
--
-- KEYS[1]   the permits: a sorted set of id -> when the permit's lease ends
-- ARGV[1]   ids: of the permits, 16 bytes each, one behind the other
-- Replies:  1 when all ids have permits, else nil
-- Effects:  none
-- Messages: none
local permits, ids = KEYS[1], ARGV[1]
for i = 1, #ids, 16 do
    local id = string.sub(ids, i, i + 15)
    local ends = redis.call('ZSCORE', permits, id)
    if not ends then
        return nil
    end
    redis.call('ZADD', permits, ends, id)
end
return 1
