-- Extends the leases of many readers, each for its own owner. Other owners' holds are not extended,
-- except as last_as says.
--
-- It never shortens a TTL: another reader may rely on it. It sets the lock's TTL before it looks at the
-- holds: the lock must not outlive the longest of them (see outlived).
--
-- A key of another type gets the reply 0; the other renewals go on.
--
-- KEYS[1..n]   the locks; repeats allowed, for several owners
-- KEYS[n+1]    the channel of the first, unused: it never exists, so the script does not run while a slot moves
-- ARGV[1..2n]  for each lock in turn: its owner; its lease, milliseconds
-- Replies:     an array of n numbers: 1 if the owner is a reader of the lock with a live hold, else 0
-- Effects:     for a reply of 1, the keys of the owner's holds and the lock have at least the lease as
--              TTL; a lock without expiry gets the TTL of the longest hold of a reader, but not while it
--              is write-locked; no key is created
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
