-- Returns the next token, as a text where a number would lose digits. A counter below least, such as
-- one that was lost and started again, is an error, and so is one that INCR rejects. Therefore this
-- must come before all other writes.
local function next_token(counter, least)
    local at = tonumber(least) > 0 and (redis.call('GET', counter) or '0')
    if at and string.find(at, '^%-?%d+$') and tonumber(at) < tonumber(least) then
        error('FENCE_EPOCH', 0)
    end
    local token = redis.call('INCR', counter)
    if token >= 9007199254740992 then
        return redis.call('GET', counter)
    end
    return token
end
