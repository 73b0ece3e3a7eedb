-- Extends the leases of many locks, each for its own owner.
--
-- A renewal never makes a time to live shorter: one that the network delivers late
-- must not cut a longer lease that another hold of the owner counts on by now.
--
-- A key that is no lock any more, because something else was stored under it,
-- answers 0 for itself: it must not cost the others their renewal.
--
-- KEYS[1..n]   the locks; one may stand there more than once, for nested holds
-- ARGV[1..2n]  for each lock in turn: its owner; its lease, milliseconds
-- Replies:     an array of n numbers: 1 when the owner held the lock and the
--              lease holds, 0 when it did not hold it
-- Effects:     the time to live of the locks answered with 1 is their lease, if
--              less was left or it was endless; no key is ever created
-- Messages:    none
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
