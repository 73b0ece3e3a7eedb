-- Returns the key that keeps one hold of a reader alive: the k-th of its owner. It has the
-- lock's name, in braces unless that has an opening one.
local function hold_key(lock, owner, k)
    local name = lock
    if not string.find(lock, '{', 1, true) then
        name = '{' .. lock .. '}'
    end
    return name .. ':' .. owner .. ':rwlock_timeout:' .. k
end
