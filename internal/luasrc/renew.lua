-- Extends the leases of many locks, each for its own owner.
--
-- It never shortens a TTL, because the owner may have another hold with a longer lease.
--
-- For a key of another type, the reply is 0, and the other renewals continue.
--
-- KEYS[1..n]   the locks; a lock may appear several times, for nested holds
-- ARGV[1..2n]  for each lock, in the same order: its owner, and the lease in milliseconds
-- Replies:     an array of n numbers: 1 if the owner holds the lock, else 0
-- Effects:     if the reply is 1, the TTL is at least the lease; no keys are created
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
