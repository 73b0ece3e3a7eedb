-- Reports that a reader who is alive has a lock with many readers, and that what the lock has
-- left is another's: more than a reader's hold that ended had, or what that reader's hold has.
-- That is right where the lock does not outlast its longest hold, which no script of ours lets
-- it (see last_as), and need not be found by a look at every reader. It looks at two of them, at
-- random, and may report false where more would tell. So it does to a user who may not ask
-- (HRANDFIELD), and on a server before 6.2.
--
-- Uses: hold_key
local function outlived(lock, lasts, left)
    for i = 1, 2 do
        local reader = redis.pcall('HRANDFIELD', lock)
        if type(reader) ~= 'string' then
            return false
        end
        local more = redis.call('PTTL', hold_key(lock, reader, 1))
        if more == lasts or more > 0 and lasts > left then
            return true
        end
    end
    return false
end
