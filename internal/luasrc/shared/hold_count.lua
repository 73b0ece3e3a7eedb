-- Returns the count of a hash's field, 0 if it is not a number, at most ten thousand: a hash of another
-- program must not stop the server.
local function hold_count(text)
    return math.floor(math.max(0, math.min(tonumber(text or '0') or 0, 10000)))
end
