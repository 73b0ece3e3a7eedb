-- Returns the count in a field of a hash, or 0 if it is not a number. The count is at most ten thousand, so
-- that a hash of another program does not block the server.
local function hold_count(text)
    return math.floor(math.max(0, math.min(tonumber(text or '0') or 0, 10000)))
end
