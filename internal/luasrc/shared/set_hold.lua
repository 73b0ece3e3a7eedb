-- Sets the key of a reader's k-th hold with a lease in milliseconds. Without a lease, it deletes the key.
--
-- Uses: hold_key
local function set_hold(lock, owner, k, lease)
    if tonumber(lease) > 0 then
        redis.call('SET', hold_key(lock, owner, k), '1', 'PX', lease)
    else
        redis.call('DEL', hold_key(lock, owner, k))
    end
end
