-- Extends the leases of many readers, each for its own owner: no other owner's hold lives on
-- by it, but by what the script takes where last_as says so.
--
-- A renewal never makes a time to live shorter: another reader may count on a longer one. The
-- lock gets its time before the holds are looked at, which have as much left then: it must not
-- outlast the longest of them (see outlived).
--
-- A key that is no lock any more, because something else was stored under it, answers 0 for
-- itself: it must not cost the others their renewal.
--
-- KEYS[1..n]   the locks; one may stand there more than once, for several owners
-- KEYS[n+1]    the channel of the first, unused: it is no key, and so a server whose slot moves
--              runs the script with all keys or not at all
-- ARGV[1..2n]  for each lock in turn: its owner; its lease, milliseconds
-- Replies:     an array of n numbers: 1 when the owner is a reader of the lock, the key of
--              one of its holds is there, and the lease holds; else 0
-- Effects:     the keys of the owner's holds and the locks answered with 1 last for the
--              lease, if less was left; a lock that never expires lasts as long as the
--              longest of the readers' holds then, but stays as it is while it is written;
--              no key is ever created
-- Messages:    none
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
