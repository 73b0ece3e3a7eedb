-- Extends the leases of many locks, each for its own owner.
--
-- It never shortens a TTL: a delayed renewal must not cut a longer lease of another hold of the owner.
--
-- A key of another type gets the reply 0; the other renewals go on.
--
-- KEYS[1..n]   the locks; repeats allowed, for nested holds
-- ARGV[1..2n]  for each lock in turn: its owner; its lease, milliseconds
-- Replies:     an array of n numbers: 1 if the owner holds the lock, else 0
-- Effects:     for a reply of 1, the TTL rises to the lease, or becomes it if there was none; no key is
--              created
local renewed = {}
for i = 1, #KEYS do
    local owner, lease = ARGV[2 * i - 1], ARGV[2 * i]
    local held = redis.pcall('HEXISTS', KEYS[i], owner)
    if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
        return held
    end
    renewed[i] = 0
    if held == 1 then
        if redis.call('PTTL', KEYS[i]) < tonumber(lease) then
            redis.call('PEXPIRE', KEYS[i], lease)
        end
        renewed[i] = 1
    end
end
return renewed
