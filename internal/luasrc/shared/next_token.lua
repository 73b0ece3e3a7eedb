-- Returns the next token, as a string if a number would lose digits. The script fails if the counter is
-- below least, because it was lost and restarted, or if INCR rejects it. Therefore this must be called
-- before any other write.
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
