-- Returns a number of holds from the text of a hash's field, 0 for one that is no number. It
-- is ten thousand at most: a hash that another program wrote must not stop the server.
local function hold_count(text)
    return math.floor(math.max(0, math.min(tonumber(text or '0') or 0, 10000)))
end
