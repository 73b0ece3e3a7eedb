-- Rewrites the leases of permits unchanged, so that WAIT can wait for replicas.
--
-- KEYS[1]   the permits: a sorted set of id -> end of lease
-- ARGV[1]   ids: of the permits, 16 bytes each, concatenated
-- Replies:  1 if all ids have permits, else nil
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
