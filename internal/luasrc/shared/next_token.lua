-- Returns the next token, as text if a number would lose digits. A counter below least is an error (it
-- was lost and restarted), as is a counter that INCR rejects. Therefore call this before any other write.
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
