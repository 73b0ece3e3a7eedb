-- Returns the key of a reader's k-th hold. It contains the lock's name, in braces unless the name contains
-- a brace.
local function hold_key(lock, owner, k)
    local name = lock
    if not string.find(lock, '{', 1, true) then
        name = '{' .. lock .. '}'
    end
    return name .. ':' .. owner .. ':rwlock_timeout:' .. k
end
