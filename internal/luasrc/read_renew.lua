-- Extends the leases of readers of many locks, each for its own owner. It does not extend the holds of
-- other owners, except as described in last_as.
--
-- It never shortens a TTL, because another reader may depend on it. It sets the TTL of a lock before
-- those of the holds, because the lock must not outlive the longest of them (see outlived).
--
-- For a key of another type, the reply is 0, and the other renewals continue.
--
-- KEYS[1..n]   the locks; a lock may appear several times, for different owners
-- KEYS[n+1]    the channel of the first, unused: it never exists, so the script does not run while a slot is moved
-- ARGV[1..2n]  for each lock, in the same order: its owner, and the lease in milliseconds
-- Replies:     an array of n numbers: 1 if the owner is a reader of the lock with a live hold, else 0
-- Effects:     if the reply is 1, the keys of the owner's holds and the lock have at least the lease as
--              their TTL; a lock that does not expire gets the TTL of the longest hold of a reader, but
--              not while it is write-locked; no keys are created
-- Uses:        hold_count, hold_key, last_for
local renewed = {}
for i = 1, #ARGV / 2 do
    local lock, owner, lease = KEYS[i], ARGV[2 * i - 1], tonumber(ARGV[2 * i])
    local text = redis.pcall('HGET', lock, owner)
    if type(text) == 'table' then
        if not string.find(text.err, 'WRONGTYPE', 1, true) then
            return text
        end
        text = false
    end
    renewed[i] = 0
    local held = {}
    for k = 1, hold_count(text) do
        local key = hold_key(lock, owner, k)
        if redis.call('PTTL', key) > -2 then
            renewed[i] = 1
            held[#held + 1] = key
        end
    end
    if renewed[i] == 1 then
        last_for(lock, redis.call('PTTL', lock), lease)
    end
    for k = 1, #held do
        if redis.call('PTTL', held[k]) < lease then
            redis.call('PEXPIRE', held[k], lease)
        end
    end
end
return renewed
